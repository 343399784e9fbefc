"""Forms of secrets: keys as their issuers publish them, and what programs write around secrets."""

from __future__ import annotations

SHORTEST_SECRET = 6  # what follows `token=` and is shorter is a setting
SHORTEST_PASSWORD = 4  # what follows `password=` hardly ever is
SHORTEST_IN_ADDRESS = 2  # between `user:` and `@host` anything is a password

_NAME = (
    r"(?:pass(?:word|wd|phrase|wort)|pwd|kennwort|contraseña|senha|mot de passe|пароль|"
    r"密码|口令|パスワード|secret|credentials?|"
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
_FLAG = r"(?:^|[\s\"'(\[,;=])--?[\w-]*(?:pass(?:word|wd|phrase)?|token|secret|api[_-]?key|access[_-]?key)"

# (kind, fewest characters, pattern); the groups are what is replaced, without one the whole match. Where the
# form of a key is its issuer's own, there is no least length and no value that is harmless.
FORMS: tuple[tuple[str, int, str], ...] = (
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
    ("secret", 0, r"\blsv2_[a-z]{2}_\w{20,}|\b(?:pcsk|jina|nfp|phx|tgp_v1)_\w{20,}|\bcsk-[a-z0-9]{24,}"),
    ("secret", 0, r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),
    # What stands around a secret.
    ("secret", SHORTEST_SECRET, r"(?i)authorization\\*[\"']?\s*[:=]\s*\\*[\"']?"
     r"(?:bearer|basic|token|negotiate|apikey|digest)\s+(?P<v>[^\s\"'\\,]+)"),
    ("secret", 0, r"(?i)\b(?:bearer|basic|token|negotiate)\s+(?P<v>[\w+/.~-]{16,}=*)"),
    ("strange", SHORTEST_PASSWORD,
     r"[\"'](?:[Bb]asic|BASIC|[Bb]earer|BEARER|Negotiate|ApiKey)\s+(?P<v>[^\s\"'\\]+)\\*[\"']"),
    ("secret", SHORTEST_SECRET, r"(?i)\b(?:set-)?cookie\\*[\"']?\s*[:=]\s*\\*[\"']?(?P<v>[^\n\"'\\]+)"),
    ("open", SHORTEST_PASSWORD, rf"(?i){_NAME}{_IS}(?:[bru]?\\*[\"'])?(?P<v>[^\s\"'<>]+)"),
    ("open", SHORTEST_PASSWORD, r"\b(?:PASS|PWD|PAT|CREDS?)=(?P<v>[^\s\"'<>]+)"),
    ("open", SHORTEST_PASSWORD, r"\b(?:pass|pw)=(?P<v>[^\s\"'<>]+)"),
    ("secret", 12, r"--[\w-]+[_-]key[ =][\"']?(?P<v>[\w+/=.-]+)"),
    ("secret", SHORTEST_PASSWORD, rf"(?i){_NAME}{_IS}[bru]?{_QUOTED}"),
    ("secret", SHORTEST_SECRET, rf"(?i){_TOKEN}{_IS}[bru]?{_QUOTED}"),
    ("secret", SHORTEST_SECRET, rf"(?i){_TOKEN}{_IS}(?:[bru]?\\*[\"'])?"
     r"(?P<v>[^\s\"',;&<>(){}\[\]\\]+)"),
    # On command lines, as one text or as a list of words.
    ("secret", SHORTEST_SECRET, rf"(?i){_FLAG}[ =]+[\"']?(?P<v>[^\s\"'-][^\s\"']+)"),
    ("secret", SHORTEST_PASSWORD, rf"(?i){_FLAG}\\*[\"'],\s*\\*[\"'](?P<v>[^\"'\\]+)"),
    ("secret", SHORTEST_PASSWORD, r"(?:\s-u|--user|--proxy-user)[ =]+[\"']?[^\s:\"']{1,64}:(?P<v>[^\s\"']+)"),
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
# Where hosts are hidden too.
ADDRESSES: tuple[tuple[str, int, str], ...] = (
    ("host", 3, r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://(?:[^\s/@\"'<>]*@)?(?P<v>[A-Za-z][\w-]*(?:\.[\w-]+)*)"),
    ("host", 3, r"\b[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.(?:internal|local(?:domain)?|lan|corp|intra(?:net)?|"
     r"com|net|org|edu)\b"),
    ("host", 3, r"\bip-\d{1,3}(?:-\d{1,3}){3}\b"),
    ("ip", 0, r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
    ("ip", 0, r"\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b"),
    ("ip", 0, r"\b(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}\b"),
)  # fmt: skip
