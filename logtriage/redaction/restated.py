"""Settings and commands that are laid out in another way, as one setting `name=value` or one command line.

Dumps of arguments (`hf_token ...... x`), tables and columns, options, calls (`putenv("HF_TOKEN", "x")`), XML,
percent-encoded JSON; commands as lists of their words. The values stay as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from logtriage.redaction.nouns import OWNERS, Noun, noun_of
from logtriage.redaction.values import is_composed, is_ordinary, is_random

_NAME = r"(?P<name>[A-Za-z_][\w./:-]*\w)"
_QUOTE = r"\\*[\"'`]"
_IN_QUOTES = r"(?P<value>[^\"'`\\\n]{4,300})"
_BAR = r"[|\x{2502}\x{2503}\x{2551}]"
# What stands behind the name is its value, whatever it looks like.
_SETTINGS = (
    rf"\b{_NAME}[ \t]+\.{{3,}}[ \t]+(?P<value>\S[^\n]*)",
    rf"(?m)(?:^|[\s\"'])--?{_NAME}(?:=|[ \t]+){_QUOTE}?(?P<value>[^\s\"'`=-][^\s\"'`\\]{{3,300}})",
    rf"(?i)(?:env|set\w*|put|get|add\w*|header)\([ \t]*{_QUOTE}{_NAME}{_QUOTE}[ \t]*,"
    rf"[ \t]*{_QUOTE}{_IN_QUOTES}{_QUOTE}",
    # A pair in a list of headers.
    rf"\(b?{_QUOTE}{_NAME}{_QUOTE}[ \t]*,[ \t]*b?{_QUOTE}{_IN_QUOTES}{_QUOTE}[ \t]*\)",
    # `hf_token: str = 'x'`
    rf"\b{_NAME}:[ \t]*(?:str|bytes|SecretStr|Optional\[str\]|str[ ]?\|[ ]?None)[ \t]*=[ \t]*"
    rf"{_QUOTE}{_IN_QUOTES}{_QUOTE}",
    rf"(?i)\b(?:key|name|id)={_QUOTE}{_NAME}{_QUOTE}[ \t]+value={_QUOTE}{_IN_QUOTES}{_QUOTE}",
    rf"(?i)<(?:name|key)>\s*{_NAME}\s*</(?:name|key)>\s*<(?:value|string)>(?P<value>[^<\n]{{4,300}})<",
)
_IN_COLUMNS = rf"[^\n]*(?:{_BAR}|\t|  )[^\n]*"
_BETWEEN_COLUMNS = rf"{_BAR}|\t|  +"
_SEVERAL = rf"(?i)\b(?:keys|tokens){_QUOTE}?[ \t]*[:=][ \t]*[\[{{(](?P<items>[^\])}}\n]{{6,900}})"
_ITEM = rf"(?:{_QUOTE}?\b(?P<owner>\w+){_QUOTE}?[ \t]*:[ \t]*)?{_QUOTE}?(?P<value>[\w+/=.-]{{6,300}})"
_LEAST_OF_SEVERAL = 8  # characters of an item that shows by itself that it is random
_ENCODED = r"(?i)[^\n]*%(?:22|27|3a|3d|5b)[^\n]*"
_DECODED = {
    "%22": '"', "%27": "'", "%3a": ":", "%3d": "=", "%26": " ", "%2c": ",", "%5b": "[", "%5d": "]",
    "%7b": "{", "%7d": "}", "%20": " ",
}  # fmt: skip
# Before the blanks of a pattern of a list there are signs.
_BETWEEN_WORDS = rf"{_QUOTE},[ \t\\]*b?{_QUOTE}"
_EDGE_OF_LIST = rf"[\[(]b?{_QUOTE}|{_QUOTE},?\\*[\])]"


def as_commands(text: str) -> list[str]:
    """Of the lines with a list of a command's words the command itself, `curl -u svc:x https://x`."""
    lines = (match[0] for match in _compiled(rf"[^\n]*{_BETWEEN_WORDS}[^\n]*").finditer(text))
    between = _compiled(rf"{_BETWEEN_WORDS}|{_EDGE_OF_LIST}")
    return [between.sub(" ", line) for line in lines]


def as_settings(text: str) -> Iterator[str]:
    """What lines say of secrets without a sign for `is`, each as `name=value`."""
    for form in _SETTINGS:
        for match in _compiled(form).finditer(text):
            if noun_of(match["name"]) is not Noun.NONE:
                yield _setting(match["name"], match["value"])
    for line in _compiled(_IN_COLUMNS).finditer(text):
        yield from _in_columns(line[0])
    for several in _compiled(_SEVERAL).finditer(text):
        for item in _compiled(_ITEM).finditer(several["items"]):
            owner = item["owner"] if (item["owner"] or "").lower() in OWNERS else ""
            if owner or is_random(item["value"], _LEAST_OF_SEVERAL):
                yield _setting(f"{owner or 'api'}_key", item["value"])
    for line in _compiled(_ENCODED).finditer(text):
        decoded = line[0]
        for written, sign in _DECODED.items():
            decoded = decoded.replace(written, sign).replace(written.upper(), sign)
        yield decoded


def _in_columns(line: str) -> Iterator[str]:
    """Of a row the cells behind a name: one word, and neither of a sentence nor of the head of a table."""
    cells = [each.strip() for each in _compiled(_BETWEEN_COLUMNS).split(line) if each.strip()]
    for before, value in pairwise(cells):
        name = before.split()[-1].rstrip(":")
        noun = noun_of(name)
        is_named = is_ordinary(value) or (noun is Noun.KEY and is_composed(value))
        if noun > Noun.AMBIGUOUS and not is_named and len(value.split()) == 1:
            yield _setting(name, value)


def _setting(name: str, value: str) -> str:
    is_plain = " " in value and not any(each in value for each in "\"'`[({")
    return f'{name}="{value}"' if is_plain else f"{name}={value}"


@cache
def _compiled(form: str) -> Any:
    import re2

    return re2.compile(form)
