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

from logtriage.regex import regex

SHORTEST_SECRET = 6  # what follows `token=` and is shorter is a setting
LEAST_OF_A_BLOCK = 12  # characters of a line of a key block
SHORTEST_IN_ADDRESS = 2  # between `user:` and `@host` anything is a password

# (kind, pattern); the group `v` is what is replaced, without it the whole match.
_FORMS: tuple[tuple[str, str], ...] = (
    # A text that looks like a placeholder is one of the log, not of ours.
    ("text", r"<(?:text|secret|email|user|host|ip)-\d+>"),
    ("secret", r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<v>.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
    ("secret", r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s:/@\"'<>]*:(?P<v>[^\s/@\"'<>]+)@"),
    ("secret", r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://(?P<v>[^\s:/@\"'<>]{16,})@"),
    ("secret", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("secret", r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}"),
    ("secret", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bnvapi-[\w-]{20,}"),
    ("secret", r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}|\bya29\.[\w.-]{20,}|\bpypi-[\w-]{20,}"),
    ("secret", r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    ("secret", r"(?i)\b(?:bearer|basic|token|negotiate)\s+(?P<v>[\w+/.~-]{16,}=*)"),
    ("secret", r"(?i)https?://hooks\.[\w.-]+/(?P<v>[\w/-]{10,})"),
    ("secret", r"(?i)[?&](?:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|key|"
     r"access_token|token|awsaccesskeyid)=(?P<v>[^&\s\"'<>]+)"),
    ("secret", r"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret|credentials?|api[_-]?key|"
     r"access[_-]?key(?:[_-]?id)?|private[_-]?key|account[_-]?key|auth(?:orization)?|cookie|session[_-]?token|[a-z]*[_-]token|token)"
     r"[\"']?\s*(?:=>|[=:])\s*[\"']?(?P<v>[^\s\"',;&<>(){}\[\]]{6,})"),
    ("secret", r"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret|api[ _-]?key|[a-z]*[_-]token)"
     r"[\"']?\s*(?:=>|[=:])\s*(?:\"(?P<v>[^\"\n]{6,200})\"|'(?P<w>[^'\n]{6,200})')"),
    ("secret", r"(?i)\b(?:pass(?:word|phrase)|secret|(?:secret|private|access|api) key)(?: is|:|=)\s+"
     r"(?P<v>[^\s\"',;&<>(){}\[\]]{6,})"),
    ("secret", r"(?i)--?(?:pass(?:word|wd|phrase)?|token|secret|api[_-]?key|[\w-]*-token)[ =]+[\"']?"
     r"(?P<v>[^\s\"'-][^\s\"']{5,})"),
    ("email", r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"),
    # With the folder before it: many users are called `train` or `data`, and so are many other things.
    ("user", r"(?:/home/|/Users/)[A-Za-z0-9._-]{2,}"),
)  # fmt: skip
_ADDRESSES = (
    ("ip", r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
    ("ip", r"\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b|\bfe80::[0-9a-fA-F:]+\b"),
)
# `tokens: 4096`, `token=None`, `secret: False` hold no secret.
_HARMLESS = regex(r"(?i)(?:[\d.,_e+-]+[kmgb]?|none|null|true|false|default|required|unknown|missing|"
                       r"invalid|expired|bearer|basic|token|negotiate|[*x.]+|<\w+>?|\$\{?\w+\}?)"
                       )  # fmt: skip
_KEY_TEXT = regex(r"[A-Za-z0-9+/]{20,}={0,2}")
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
        for kind, form in _compiled(self._addresses):
            for match in form.finditer(text):
                value = next((match[name] for name in form.groupindex if match[name]), match[0])
                if kind != "secret" or _is_secret(value, match[0]):
                    self._learn(kind, value)
                    # Of a key block each line is as secret as all of it.
                    for line in value.splitlines()[1:] if kind == "secret" else ():
                        if len(line.strip()) >= LEAST_OF_A_BLOCK:
                            self._learn(kind, line.strip())
                        for run in _KEY_TEXT.findall(line):  # behind a logger's prefix
                            self._learn(kind, run)

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


def _is_secret(value: str, matched: str) -> bool:
    if "://" in matched and matched.endswith("@"):
        return len(value) >= SHORTEST_IN_ADDRESS
    return len(value) >= SHORTEST_SECRET and not _HARMLESS.fullmatch(value)


@cache
def _compiled(addresses: bool) -> tuple[tuple[str, Any], ...]:
    import re2

    options = re2.Options()
    options.max_mem = 64 << 20
    forms = (*_FORMS, *_ADDRESSES) if addresses else _FORMS
    return tuple((kind, re2.compile(form, options=options)) for kind, form in forms)
