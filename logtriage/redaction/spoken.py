"""Forms of secrets in what people say: no issuer's form, and often no `=` before them."""

from __future__ import annotations

import re

from logtriage.redaction.values import is_harmless, is_name, is_odd, is_ordinary, is_word
from logtriage.regex import regex

_PASSWORD = (
    r"(?:pass(?:word|phrase|code|wort|wd)|pass phrase|kennwort|contraseña|senha|mot de passe|пароль|"
    r"密码|口令|パスワード)"
)
_SECRET = (
    r"(?:(?:secret access|secret|private|access|api|account|license|auth|storage|encryption|signing|master|"
    r"deploy) ?key|(?:client |shared |app )?secret|credentials?)"
)
_OF = r"(?:\s+[\w.@-]*[\w@-]){0,6}?"
_FOR = r"(?:\s+(?:for|of|to)\s+\S{1,64})?"
_LINK = (
    r"\s+(?:(?:is|was|be|are)(?:\s+(?:now|set to|changed to|reset to))?|(?:set|changed|reset|updated)\s+to|"
    r"ist|lautet|es|est)\s+"
)
_SIGN = r"\s*(?:[:=]|->|=>)\s+"
_V = r"[\"'`(\[]?(?P<v>[^\s\"'`,;]+)"
_QUOTE = r"[\"'`]"
_NAMED_SO = r"[\w.@-]{1,64}"
_WAS = (
    r"(?:\s+(?:was|is|has|been|not)){0,2}"
    r"\s+(?:refused|rejected|revoked|expired|denied|unauthori[sz]ed|accepted)\b"
)

# Names of environments and settings that end so and hold no secret.
_ISSUERS = (
    r"(?:open_?ai|anthropic|claude|cohere|mistral|groq|together|fireworks|deepseek|gemini|palm|vertex|hf|"
    r"hugging_?face|wandb|comet|neptune|mlflow|clearml|swanlab|aim|aws|azure|gcp|google|cloudflare|minio|r2|b2|"
    r"wasabi|slack|discord|telegram|twilio|stripe|sendgrid|mailgun|datadog|dd|sentry|new_?relic|pagerduty|"
    r"opsgenie|github|gitlab|docker|quay|ngc|nvidia|nim|jwt|ssh|ssl|tls|gpg|hmac|aes|fernet|pinecone|weaviate|"
    r"qdrant|supabase|replicate|runpod|vast|modal|serper|tavily|serpapi|dashscope|zhipu|moonshot|kaggle|lightning)"
)
_OWNERS = (
    rf"(?:{_ISSUERS}|db|database|user|root|admin|login|smtp|imap|mail|email|ftp|sftp|ldap|http|proxy|redis|mysql|"
    r"maria|pg|postgres(?:ql)?|mongo(?:db)?|kafka|rabbit(?:mq)?|amqp|elastic(?:search)?|es|s3|svn|git|vpn|wifi|"
    r"bmc|ipmi|sudo|app|service|svc|registry|repo)"
)
_IS = r"\\*[\"']?\s*(?:=>|:=|[=:])\s*\\*[\"']?"
_SET = r"(?P<v>[^\s\"'<>]+)"
_ITEMS = (
    r"(?:passwords|passwds|pwds|passphrases|passcodes|secrets|credentials|"
    r"(?:api|access|private|secret|account|client)[_-]?keys|"
    r"(?:api|access|auth|bearer|refresh|session|hub|hf|user)[_-]?tokens)"
)

# (kind, fewest characters, pattern). What of the group `v` is taken: `given` all but words that go on with
# the sentence, `told` neither these nor paths and the like, `password` and `odd` what looks like one,
# `strange` what is no word of English either, `phrase` the words up to one that goes on with it, `list` each
# of several, `named` what `name` promises.
SPOKEN: tuple[tuple[str, int, str], ...] = (
    ("told", 4, rf"(?i){_PASSWORD}{_OF}{_LINK}{_V}"),
    ("told", 4, rf"(?im){_PASSWORD}{_OF}{_SIGN}{_V}[\"'`]?[.!]?[ \t]*$"),
    ("password", 4, rf"(?i){_PASSWORD}{_OF}{_SIGN}{_V}"),
    ("password", 6, rf"(?i)\b{_SECRET}{_OF}(?:{_LINK}|{_SIGN}){_V}"),
    ("password", 4, rf"(?i){_PASSWORD}{_FOR}(?:\s+to)?\s+{_V}"),
    ("odd", 6, rf"(?i)\b{_SECRET}{_FOR}\s+{_V}"),
    ("told", 4, rf"(?i){_PASSWORD}{_FOR}\s*[:=]?\s*{_QUOTE}(?P<v>[^\"'`\n]{{4,200}}){_QUOTE}"),
    ("phrase", 4, r"(?i)\bpass ?phrase(?:\s+(?:is|was)|\s*[:=])?\s+[\"'`]?(?P<v>[^\n\"'`,;.()\\]{4,200})"),
    ("odd", 6, rf"(?i)\b(?:{_SECRET}|token|bearer|jwt){_FOR}\s*{_QUOTE}(?P<v>[^\s\"'`]{{4,400}}){_QUOTE}"),
    ("told", 6, rf"(?i)\b(?:token|{_SECRET})\s+{_QUOTE}(?P<v>[^\s\"'`]{{6,400}}){_QUOTE}{_WAS}"),
    ("odd", 6, rf"(?i)\b(?:token|secret|jwt)\s+(?P<v>[^\s\"'`]{{6,400}}){_WAS}"),
    ("odd", 6, rf"(?i)\b(?:access|refresh|api|hub|auth|session|id)[ _-]token\s+{_V}"),
    ("odd", 6, rf"(?i)\b(?:pass|pw)(?:\s+|\\*[\"']?\s*[:=]\s*\\*){_V}"),
    ("given", 4, r"(?i)<[\w:-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api-?key)>"
     r"(?P<v>[^<\n]{4,300})</"),
    ("given", 4, rf"(?i){_PASSWORD}::\s*(?P<v>\S+)"),  # LDIF
    ("secret", 0, r"(?i)\b(?:otp|(?:verification|one-time|2fa) (?:code|password))(?: is)?\s*[:=]?\s*"
     r"(?P<v>\d{4,8})\b"),
    # A key for somebody, written somewhere: a run of hexadecimals is no hash here.
    ("secret", 0, rf"(?i)\bkeys?\s+(?:for|of|to|from)\s+(?:[\w-]+\.)*(?:api|{_ISSUERS})\b"
     r"[^\n]{0,120}?[:=\s]\s*(?P<v>[0-9a-f]{32,64})\b"),
    ("secret", 0, r"(?i)\b(?:key|token)\b[^\n]{0,100}?\b(?:netrc|keyring|keychain|credentials?)\b"
     r"[^\n]{0,40}?[:=\s]\s*(?P<v>[0-9a-f]{32,64})\b"),
    # A name and a password: `credentials bob / …`, `logged in as bob with …`.
    ("told", 4, rf"(?i)\bcredentials?\b{_FOR}\s*[:=]?\s+[\"'`(]?{_NAMED_SO}"
     r"(?:\s+[/|:]\s+|[/:|])(?P<v>[^\s/\"'`,;:)]{4,})(?:[\s\"'`,;.)]|$)"),
    ("password", 6,
     r"(?i)\b(?:logg?(?:ed|ing)?[ -]?in|sign(?:ed|ing)? in|authenticat\w{1,6}|connect\w{0,4})\s+"
     rf"(?:to\s+\S{{1,64}}\s+)?(?:as|using|with)\s+{_QUOTE}?{_NAMED_SO}{_QUOTE}?\s*"
     rf"(?:\s(?:with|using|and)\s|[/:])\s*{_V}"),
    ("password", 6,
     r"(?i)\b(?:authenticat\w{1,6}|log[ -]?in|logon|sign[ -]?in|bind)\s+"
     rf"(?:(?:of|as|for|by)\s+)?{_QUOTE}?{_NAMED_SO}{_QUOTE}?\s+(?:with|using)\s+{_V}"),
    ("password", 6, rf"(?i)\bauth(?:entication)?\s+{_NAMED_SO}:{_V}"),
    ("password", 6, rf"(?i)\b(?:login|user(?:name)?)\s+{_NAMED_SO}\s+[/|]\s+{_V}"),
    # `{"access": "…", "refresh": "…"}`, as token servers answer.
    ("odd", 6, r"(?i)\\*[\"'](?:access|refresh|jwt|bearer|otp|csrf|xsrf|assertion)\\*[\"']"
     r"\s*:\s*\\*[\"'](?P<v>[^\s\"'\\]+)"),
    ("odd", 10, r"\b(?:access|refresh|jwt)\s*=\s*\\*[\"']?(?P<v>[\w+/.~-]+=*)"),
    # By their names.
    ("named", 4, r"\b(?P<name>[A-Z][A-Z0-9_]*_(?:KEY|PASS|PWD|PW|PSW|PASSWD|PASSCODE|CREDS?|PAT)S?)"
     rf"{_IS}{_SET}"),
    ("named", 4, rf"(?i)(?:^|[^a-z])(?P<name>{_ISSUERS}(?:[_-]\w{{1,24}})?[_-]key){_IS}{_SET}"),
    ("named", 4, rf"(?i)(?:^|[^a-z])(?P<name>{_OWNERS}[_-](?:pass|pwd|pw|psw)){_IS}{_SET}"),
    # Several at once.
    ("list", 4, rf"(?i){_ITEMS}{_IS}[\[({{](?P<v>[^\])}}\n\x00]+)"),
    ("list", 4, rf"(?i){_ITEMS}{_IS}[\[({{](?P<v>[^\])}}\x00]{{1,1000}})[\])}}]"),
    ("list", 4, rf"(?i){_ITEMS}\\*[\"']?:\s*\n(?P<v>(?:[ \t]*-[ \t]+\S+[ \t]*(?:\n|$)){{1,50}})"),
    ("list", 4, rf"(?i){_ITEMS}\\*[\"']?\s*[=:]\s*"
     r"(?P<v>[^\s\"'\[({,;]+(?:\s*,\s*[^\s\"'\[({,;]+){1,50})"),
)  # fmt: skip

# `SORT_KEY=loss`, `S3_KEY=runs/17`, `FORWARD_PASS=2.3ms`: keys of tables and objects, passes of a model.
ORDINARY_NAME = regex(
    r"(?i)(?:^|_)(?:(?:sort|cache|primary|foreign|partition|group|index|lookup|map|routing|shard|row|object|"
    r"label|input|output|image|text|data|trace|query|value|state|model|batch|column|col|metric|monitor|item|"
    r"dict|hash|node|rank|host|job|run|task|event|config|param|feature|target|loss|score|attention|search|"
    r"unique|dedup|bucket|file|public|hot|store|weight|layer|name|type|id|reward|prompt|response|content|"
    r"messages|split|kv|redis|kafka)_keys?|"
    r"(?:forward|backward|single|two|first|second|last|num|by|multi|fast|slow|one|warmup|compiler)_pass)$"
)

TOLD = ("given", "told", "password", "odd", "strange", "phrase", "list")


def is_name_of_a_secret(name: str, value: str) -> bool:
    """Whether a setting of this name holds a secret; where keys of objects are paths, it does not."""
    is_password = not name.lower().endswith(("key", "keys"))
    return ORDINARY_NAME.search(name) is None and (is_password or not is_name(value))


def values_told(kind: str, least: int, value: str) -> list[str]:
    """The secrets in what a form of these kinds found; with a sign at the end that may belong to it, both."""
    if kind == "list":
        return _items(value, least)
    if kind == "phrase":
        return _phrase(value, least)
    bare = value if is_harmless(value) else value.rstrip(_CLOSING)
    if kind == "strange":
        taken = len(bare) >= least and not (is_harmless(bare) or is_ordinary(bare) or is_name(bare))
    elif value[:1].isspace():  # ` value=`: what stands between two quoted texts
        taken = False
    elif kind in ("odd", "password"):
        taken = is_odd(bare, least, is_password=kind == "password")
    else:
        taken = len(bare) >= least and not is_harmless(bare) and not is_word(bare)
        taken = taken and (kind == "given" or not is_name(bare))
    return list(dict.fromkeys([value if kind == "given" else bare, bare])) if taken else []


_CLOSING = ".,:;)]}>`"
_QUOTED_ITEM = regex(r"\"([^\"\n]{1,300})\"(\s*:)?|'([^'\n]{1,300})'(\s*:)?")


def _items(value: str, least: int) -> list[str]:
    """Of a list each item, of a mapping each value."""
    quoted = _QUOTED_ITEM.findall(value)
    if quoted:
        items = [one or other for one, of_one, other, of_other in quoted if not of_one and not of_other]
        return [each for each in items if len(each) >= least and not is_harmless(each) and not is_word(each)]
    items = [each.lstrip("- ").rpartition(": ")[2].strip(" \"'\\)]}") for each in re.split(r"[,\n]", value)]
    return [each for each in items if is_odd(each, least, is_password=True)]


def _phrase(value: str, least: int) -> list[str]:
    """The words up to one with which a sentence about a phrase goes on."""
    end = 0
    for word in re.finditer(r"\S+", value):
        if is_word(word[0]) or is_harmless(word[0]) or word[0].startswith("-"):
            break
        end = word.end()
    told = value[:end]
    return [told] if len(told) >= least else []
