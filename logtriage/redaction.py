"""What leaves the machine holds no secret: secrets become placeholders, and the answer gets them back.

A value that was recognised once (`token=…`) is replaced wherever it stands, also where nothing around it says
what it is. Patterns run in linear time (re2). The forms of keys are those that their issuers publish.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any
from urllib.parse import unquote

from logtriage.regex import regex

SHORTEST_SECRET = 6  # what follows `token=` and is shorter is a setting
SHORTEST_PASSWORD = 4  # what follows `password=` hardly ever is
SHORTEST_IN_ADDRESS = 2  # between `user:` and `@host` anything is a password
LEAST_OF_A_BLOCK = 4  # characters of a line of a key block
LONGEST_BLOCK = 16_000  # characters of a key block whose end is not there

_NAME = (
    r"(?:pass(?:word|wd|phrase|wort)|pwd|contraseña|senha|密码|口令|secret|credentials?|"
    r"api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|"
    r"(?:private|account|subscription|functions|encryption|signing|master|license|storage)[_-]?key|"
    r"auth(?:orization)?|session[_-]?(?:token|id)|client[_-]?secret)"
)
# `=`, `": "`, `\": \"`, and as JSON and addresses write them.
_IS = r"\\*[\"']?\s*(?:=>|:=|[=:：]|\\+u003[ad]|%3[aAdD])\s*"
_TOKEN = r"(?:[\w-]*[_-]token|\btoken)"
_QUOTED = (
    r"(?:\"(?P<v>(?:[^\"\\\n]|\\.){4,300})\"|'(?P<w>(?:[^'\\\n]|\\.){4,300})'|"
    r"\\+\"(?P<x>[^\"\n]{4,300}?)\\+\")"
)
_FLAG = r"--?[\w-]*(?:pass(?:word|wd|phrase)?|token|secret|api[_-]?key|access[_-]?key)"

# (kind, fewest characters, pattern); the groups are what is replaced, without one the whole match. Where the
# form of a key is its issuer's own, there is no least length and no value that is harmless.
_FORMS: tuple[tuple[str, int, str], ...] = (
    # A text that looks like a placeholder is one of the log, not of ours.
    ("text", 0, r"<(?:text|secret|email|user|host|ip)-\d+>"),
    ("block", 0, r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?P<v>.*?)"
     r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)"),
    # A line of such a block whose beginning is out of sight.
    ("run", 0, r"(?m)(?:^|[\s|:>\"'\]])(?P<v>[A-Za-z0-9+/]{60,76}={0,2})(?:$|[\s\"'\\|])"),
    # Credentials in addresses.
    ("secret", SHORTEST_IN_ADDRESS,
     r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s:/@\"'<>]*:(?P<v>[^\s/?#\"'<>]+)@"),
    ("secret", 0, r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://(?P<v>[^\s:/@\"'<>]{16,})(?::[^\s/@\"'<>]*)?@"),
    ("secret", SHORTEST_IN_ADDRESS, r"(?i)\bjdbc:oracle:\w+:[^\s/@]{1,64}/(?P<v>[^\s/@\"']+)@"),
    ("secret", 0, r"(?i)https?://hooks\.[\w.-]+/(?P<v>[\w/-]{10,})"),
    ("secret", 0, r"(?i)discord(?:app)?\.com/api/webhooks/\d+/(?P<v>[\w-]{20,})"),
    ("secret", 0, r"(?i)\bwebhook\.office\.com/(?P<v>[^\s\"'<>]{16,})"),
    ("secret", SHORTEST_PASSWORD,
     r"(?i)[?&](?:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|key|code|apikey|"
     r"access_token|token|awsaccesskeyid)=(?P<v>[^&\s\"'<>]+)"),
    # Keys by the form that their issuers publish.
    ("secret", 0, r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|\bABSK[A-Za-z0-9+/=]{40,}"),
    ("secret", 0, r"\b(?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9+/=]{20,}"),
    ("secret", 0, r"\bAIza[\w-]{30,}|\bya29\.[\w.-]{20,}|\bGOCSPX-[\w-]{20,}|\b1//0[\w-]{20,}|"
     r"\bGOOG[A-Z0-9]{20,}"),
    ("secret", 0, r"[A-Za-z0-9+/]{86}==|\b[\w.~-]{3,8}8Q~[\w.~-]{30,}|"
     r"\b[A-Za-z0-9]{20,}(?:JQQJ99|AzCA)[A-Za-z0-9]{8,}"),
    ("secret", 0, r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"),
    ("secret", 0, r"\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct|wt)-[\w.-]{20,}"),
    ("secret", 0, r"\bxox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}"),
    ("secret", 0, r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}|\bwandb_v\d_\w{20,}|\blocal-[0-9a-f]{40}\b"),
    ("secret", 0, r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bnvapi-[\w-]{20,}|\bpypi-[\w-]{20,}"),
    ("secret", 0, r"\b(?:npm|gsk|r8|rpa|fw|xai|pplx|tvly|tskey|dckr_[po]at|lin_api|figd|shpat|glsa|glc|"
     r"sntry[su]|whsec|dop_v1|doo_v1|PMAK|ops|cfut|hfp|wb)[_-][A-Za-z0-9_-]*[A-Za-z0-9]{20,}"),
    ("secret", 0, r"\bdapi[a-f0-9]{32}(?:-\d)?\b|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhv[sbr]\.[\w-]{20,}|"
     r"\bATATT3[\w=-]{20,}|\b\d{8,10}:AA[\w-]{30,}|\bAGE-SECRET-KEY-1[A-Z0-9]{40,}|\bkey-[0-9a-f]{32}\b|"
     r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"),
    ("secret", 0, r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),
    # What stands around a secret.
    ("secret", SHORTEST_SECRET, r"(?i)authorization\\*[\"']?\s*[:=]\s*\\*[\"']?"
     r"(?:bearer|basic|token|negotiate|apikey|digest)\s+(?P<v>[^\s\"'\\,]+)"),
    ("secret", 0, r"(?i)\b(?:bearer|basic|token|negotiate)\s+(?P<v>[\w+/.~-]{16,}=*)"),
    ("secret", SHORTEST_SECRET, r"(?i)\b(?:set-)?cookie\\*[\"']?\s*[:=]\s*\\*[\"']?(?P<v>[^\n\"'\\]+)"),
    ("open", SHORTEST_PASSWORD, rf"(?i){_NAME}{_IS}(?:[bru]?\\*[\"'])?(?P<v>[^\s\"'<>]+)"),
    ("open", SHORTEST_PASSWORD, r"\b(?:[A-Z0-9_]*_)?(?:PASS|PWD|PAT|CREDS?|PASSWORD)=(?P<v>[^\s\"'<>]+)"),
    ("open", SHORTEST_PASSWORD, r"\b(?:pass|pw)=(?P<v>[^\s\"'<>]+)"),
    ("secret", 16, r"\b[A-Z0-9_]+_KEY=[\"']?(?P<v>[\w+/=.-]+)"),
    ("secret", 12, r"--[\w-]+[_-]key[ =][\"']?(?P<v>[\w+/=.-]+)"),
    ("secret", SHORTEST_PASSWORD, rf"(?i){_NAME}{_IS}[bru]?{_QUOTED}"),
    ("secret", SHORTEST_SECRET, rf"(?i){_TOKEN}{_IS}[bru]?{_QUOTED}"),
    ("secret", SHORTEST_SECRET, rf"(?i){_TOKEN}{_IS}(?:[bru]?\\*[\"'])?"
     r"(?P<v>[^\s\"',;&<>(){}\[\]\\]+)"),
    ("secret", SHORTEST_SECRET, r"(?i)\b(?:pass(?:word|phrase)|secret|(?:secret|private|access|api) key)"
     r"(?: is|:|=)\s+(?P<v>[^\s\"',;&<>(){}\[\]]+)"),
    # On command lines, as one text or as a list of words.
    ("secret", SHORTEST_SECRET, rf"(?i){_FLAG}[ =]+[\"']?(?P<v>[^\s\"'-][^\s\"']+)"),
    ("secret", SHORTEST_PASSWORD, rf"(?i)[\"']{_FLAG}\\*[\"'],\s*\\*[\"'](?P<v>[^\"'\\]+)"),
    ("secret", SHORTEST_PASSWORD, r"(?:\s-u|--user|--proxy-user)[ =]+[\"']?[^\s:\"']{1,64}:(?P<v>[^\s\"']+)"),
    ("secret", SHORTEST_PASSWORD, r"\bsshpass\s+-p\s*[\"']?(?P<v>[^\s\"']+)|"
     r"\blogin\b[^\n]{0,200}?\s-p[ =]+[\"']?(?P<w>[^\s\"']+)|"
     r"\b(?:mysql|mysqldump|mariadb)\b[^\n]{0,200}?\s-p(?P<x>[^\s\"']+)"),
    ("secret", 0, r"(?i)\b(?:wandb|huggingface-cli|hf(?: auth)?|comet|clearml)\s+login\s+"
     r"(?:--\S+\s+)*(?P<v>[\w-]{16,})"),
    ("secret", SHORTEST_PASSWORD, r"(?i)\blogin\s+\S+\s+password\s+(?P<v>\S+)"),  # .netrc
    ("secret", SHORTEST_PASSWORD, r"(?i)\bidentified by\s+[\"'](?P<v>[^\"'\n]+)"),
    # A container's environment: `name: DB_PASSWORD`, then `value: …`.
    ("secret", SHORTEST_PASSWORD,
     r"(?i)\bname\\*[\"']?\s*[:=]\s*\\*[\"']?[\w.-]*(?:passw(?:or)?d|secret|token|_key|apikey|credential)[\w.-]*"
     rf"\\*[\"']?\s*,?\s*-?\s*\\*[\"']?value{_IS}(?:{_QUOTED}|(?P<y>[^\s\"',}}\\]+))"),
    ("email", 0, r"[\pL\pN._%+-]{1,64}@[\pL\pN-]+(?:\.[\pL\pN-]+)*\.\pL{2,}\b"),
    # With the folder before it: many users are called `train` or `data`, and so are many other things.
    ("user", 0, r"(?:/home/|/Users/)[A-Za-z0-9._-]{2,}|\b[A-Za-z]:\\+Users\\+[^\\\s\"'/:]{2,}"),
)  # fmt: skip
_ADDRESSES: tuple[tuple[str, int, str], ...] = (
    ("host", 3, r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://(?:[^\s/@\"'<>]*@)?(?P<v>[A-Za-z][\w-]*(?:\.[\w-]+)*)"),
    ("host", 3, r"\b[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.(?:internal|local(?:domain)?|lan|corp|intra(?:net)?|"
     r"com|net|org|edu)\b"),
    ("host", 3, r"\bip-\d{1,3}(?:-\d{1,3}){3}\b"),
    ("ip", 0, r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
    ("ip", 0, r"\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b"),
    ("ip", 0, r"\b(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}\b"),
)  # fmt: skip
# `tokens: 4096`, `token=None`, `secret: False` hold no secret; a shell's PWD is a folder.
_HARMLESS = regex(
    r"(?i)(?:[\d.,_e+-]+[kmgb]?|none|null|nil|true|false|yes|no|default|required|unknown|missing|"
    r"invalid|expired|bearer|basic|token|negotiate|[*x.]+|<\w+>?|[<\[]\|?\w+\|?[>\]]|\$\{?\w+\}?|localhost)"
)
_ENDS_VALUE = re.compile(r"[,;&(){}\[\]\\]")
_KEY_TEXT = regex(r"[A-Za-z0-9+/]{20,}={0,2}")
_ESCAPED_BREAK = regex(r"(?:\\+[nr])+")
_PLACEHOLDER = regex(r"<(?:text|secret|email|user|host|ip)-\d+>")


class Redaction:
    """The placeholders of one job's texts. The same value has the same placeholder in all of them."""

    def __init__(self, *, hosts: Iterable[str] = (), addresses: bool = False) -> None:
        """`hosts` are names to hide besides; `addresses` hides IP addresses too."""
        self._placeholders: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._used: set[str] = set()
        self._addresses = addresses
        self._hosts = frozenset(host for host in hosts if len(host) > 2)
        for host in sorted(self._hosts):
            self._learn("host", host)

    @property
    def counts(self) -> dict[str, int]:
        """How many different values of each kind were hidden in texts: {"email": 1, "secret": 2}."""
        kinds = Counter(placeholder[1:].rpartition("-")[0] for placeholder in self._used)
        return {kind: number for kind, number in sorted(kinds.items()) if kind != "text"}

    def learn(self, text: str) -> None:
        """Find the values of a text, so that they are hidden in all later ones wherever they stand."""
        for kind, least, form in _compiled(self._addresses):
            for match in form.finditer(text):
                value = next((match[name] for name in form.groupindex if match[name]), match[0])
                if kind == "block":
                    self._learn_block(value if match[0].endswith("-----") else value[:LONGEST_BLOCK])
                elif kind == "run":
                    if _is_key_text(value):
                        self._learn("secret", value)
                elif kind == "open":
                    self._learn_open(value, match[0], least)
                elif not least or (len(value) >= least and not _HARMLESS.fullmatch(value)):
                    self._learn(kind, value)
                    if kind == "secret" and "%" in value and len(unquote(value)) >= SHORTEST_PASSWORD:
                        self._learn(kind, unquote(value))

    def _learn_block(self, value: str) -> None:
        """A key block: all of it, and each of its lines, behind whatever a logger wrote before it."""
        self._learn("secret", value)
        for line in _ESCAPED_BREAK.sub("\n", value).splitlines():
            if len(line.strip()) >= LEAST_OF_A_BLOCK:
                self._learn("secret", line.strip())
            for run in _KEY_TEXT.findall(line):
                self._learn("secret", run)

    def _learn_open(self, value: str, matched: str, least: int) -> None:
        """What follows `password=` without quotes, up to the next blank, and what a list would take of it."""
        first = _ENDS_VALUE.split(value, maxsplit=1)[0]
        if _HARMLESS.fullmatch(first) or (first[:1] in ("/", ".", "~") and _OWN_FOLDER.match(matched)):
            return
        if ": " in matched and first.isalpha() and _PROSE.match(matched):
            return
        ends = (value.partition(sign)[0] for sign in ";,&")
        for each in dict.fromkeys((value, value.rstrip(",;&)}]\\"), first, *ends)):
            if len(each) >= least:
                self._learn("secret", each)

    def redact(self, text: str) -> str:
        """The text with placeholders. Whatever it holds, `restore` gives exactly it back."""
        self.learn(text)
        return self._replaced(text)

    def restore(self, text: str) -> str:
        """The text with the values that stood in the place of placeholders."""
        return _PLACEHOLDER.sub(lambda match: self._values.get(match[0], match[0]), text)

    def _learn(self, kind: str, value: str) -> None:
        if not value or value in self._placeholders:
            return
        self._counts[kind] += 1
        placeholder = f"<{kind}-{self._counts[kind]}>"
        self._placeholders[value] = placeholder
        self._values[placeholder] = value

    def _replaced(self, text: str) -> str:
        present = [value for value in self._placeholders if value in text]
        if not present:
            return text
        # Longest first, and in one pass: what was put in is never looked at again.
        present.sort(key=len, reverse=True)
        parts = [self._pattern(value) for value in present]

        def placeholder(match: re.Match[str]) -> str:
            told = self._placeholders[match[0]]
            self._used.add(told)
            return told

        return re.sub("|".join(parts), placeholder, text)

    def _pattern(self, value: str) -> str:
        """Names and short passwords are replaced as whole words only."""
        if self._placeholders[value].startswith("<user"):
            return rf"{re.escape(value)}(?!\w)"
        if len(value) < SHORTEST_SECRET or self._placeholders[value].startswith("<host"):
            return rf"(?<!\w){re.escape(value)}(?!\w)"
        return re.escape(value)


_OWN_FOLDER = regex(r"(?:OLD)?PWD=")
# `credentials: Permission denied` says what went wrong.
_PROSE = regex(r"(?i)(?:credentials?|auth(?:orization)?)\\*[\"']?:")


def _is_key_text(value: str) -> bool:
    """Whether a long run is base64 of something random: no hash in hexadecimal, no path, no name."""
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(kind(each) for each in value) for kind in kinds) and value.count("/") < len(value) // 10


@cache
def _compiled(addresses: bool) -> tuple[tuple[str, int, Any], ...]:
    import re2

    options = re2.Options()
    options.max_mem = 64 << 20
    options.log_errors = False
    forms = (*_FORMS, *_ADDRESSES) if addresses else _FORMS
    return tuple((kind, least, re2.compile(form, options=options)) for kind, least, form in forms)
