"""Secrets by the nouns beside them: in settings (`bind_pw=…`, `auth=('svc', '…')`) and in what people say.

Two laws in place of a table of forms. What a setting whose name ends in a secret's noun is given is a
secret, by whatever sign and in whatever quotes. And in a clause about a secret a word that is none of English
or of training logs is the secret, before the noun or behind it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from logtriage.redaction.nouns import OWNERS, Noun, noun_of
from logtriage.redaction.values import (
    is_composed,
    is_harmless,
    is_name,
    is_odd,
    is_ordinary,
    is_word,
)
from logtriage.regex import regex

LONGEST = 300  # characters of a value or list of values
FARTHEST = {Noun.PASSWORD: 12, Noun.KEY: 8, Noun.AMBIGUOUS: 4}  # words between a noun and its secret
FARTHEST_PLAIN = 6  # where the secret has letters only
SHORTEST_PLAIN = 6
_NAME = regex(r"[A-Za-z_][\w.-]*")
_SIGN = regex(r"""\\*["'`]?[\])]{0,2}\s*(?:=>|:=|->|>>>|={1,2}|:|\((?=\s*[bru]?["']))\s*""")
# `SecretStr(…)`, `str(…)`
_CALL = regex(r"(?:\w{1,40}\.){0,4}(?:[A-Z]\w{0,60}|str|bytes|repr|quote)\(\s{0,4}(?=[^\s)])")
_CHANGE = regex(
    r"(?i)\b(?:changed|rotated|reset|updated|replaced|renewed|switched|differs?):?(?:\s+from)?\s+"
    r"(\S{4,300})\s+(?:to|->|=>)\s+(\S{4,300})"
)
_CONTRAST = regex(
    r"(\S{6,300}?),?\s(?:but (?:got|was|found|is|not)|instead of|and not|!=|differs from|versus|vs\.?)\s"
    r"(\S{6,300})"
)
_SAID_SIGN = regex(r"(?i)\s+(?:is|was|(?:is |was |has been )?(?:now |set |changed |reset )to|is now)\s+")
_QUOTED = regex(r"""[bru$]?\\*(["'`])(?P<v>(?:(?!\1)[^\\\n]|\\.){1,300}?)\\*\1""")
_BEFORE = regex(r"\b([a-zA-Z]{2,16}) $")
_BARE = regex(r"""[^\s"'`<>,;(){}\[\]][^\s"'`<>,;)}\]]{0,299}""")
_ITEM = regex(r"""["']([^"'\n]{1,300})["'](\s*:)?""")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WORD = regex(r"\S+")
_CLAUSE_ENDS = regex(r"(?:[.;!?]|\|)[\"'`)]*$")
_AROUND, _LONGEST_WORD = 10, 40
_OF_CODE = regex(r"\W{1,3}(?:is |was )?[\"']?([\w-]{4,32})\b")
_EDGES = "\"'`()[]{}<>,;:.!?|*"
_QUOTES = "\"'`"
# Words that may stand between a noun and its secret when both belong together.
_LINKS_WORDS = """
    is was be are not no a an the valid invalid wrong bad correct incorrect as with value environment
    variable env set to now still this that of has been given got using used expired rejected refused for
    key tried try"""
_LINKS = frozenset(_LINKS_WORDS.split())
# What comes behind these is somebody's or something's name.
_NAMING_WORDS = """
    user users username account host hostname server node database db repo repository registry principal
    realm namespace pod container image job rank service app file variable model dataset project team org
    bucket device plugin module package version class function method id request cluster queue partition
    role group profile client from at in on by named called domain helper provider backend store mount
    volume configmap"""
_NAMING = frozenset(_NAMING_WORDS.split())
# Of these `secret "regcred"` is the name of a Kubernetes object.
_OBJECTS = regex(
    r"(?i)\bsecrets?\b.{0,80}(?:not found|exist|volume|mount|namespace|\bcreat|\bdelet|propagat|configured|"
    r"\bsync\b|forbidden|\bresource)|"
    r"(?:volume|mount|namespace|kubectl|pull|referenc|find key|kube).{0,80}secrets?\b"
)
_OBJECT_NAME = regex(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(?:/[a-z0-9.-]+)?")
_IN_TWO_WORDS = frozenset({("pass", "word"), ("pass", "phrase"), ("pass", "code"), ("community", "string")})
_CODE = regex(r"(?i)\b(?:unlock|access|security|pairing|activation|recovery|backup|pin) code\b|\bPIN\b")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a line: as it stands, without quotes and stops, and whether quotes stood around it."""

    raw: str
    core: str
    is_quoted: bool
    ends: bool  # a clause


def told_in(line: str) -> Iterator[str]:
    """The secrets that nouns in a line give away; `STEMS` are in each line that holds one."""
    told = {*_settings(line), *_said(line), *_changed(line)}
    yield from told
    # What stands opposite to a secret is one.
    for match in _CONTRAST.finditer(line) if told else ():
        one, other = match[1].strip(_EDGES), match[2].strip(_EDGES)
        if (one in told or other in told) and is_odd(one) and is_odd(other):
            yield from (one, other)


def _changed(line: str) -> Iterator[str]:
    """Of `the password of svc was changed from … to …` both."""
    for change in _CHANGE.finditer(line):
        start = max(0, change.start() - LONGEST)
        words = [_word(match[0]) for match in _WORD.finditer(line[start : change.start()])]
        noun = max((_noun_at(words, index) for index in range(len(words))), default=Noun.NONE)
        for value in (change[1].strip(_EDGES), change[2].strip(_EDGES)):
            if noun > Noun.AMBIGUOUS and _is_secret(value, noun, "", is_said=True, is_prose=False):
                yield value


def is_object(value: str, line: str) -> bool:
    """Whether a line is about a secret of Kubernetes, and the value such an object's name."""
    return _OBJECT_NAME.fullmatch(value) is not None and _OBJECTS.search(line) is not None


def _settings(line: str) -> Iterator[str]:
    for match in _NAME.finditer(line):
        name = match[0].rstrip(".-")
        noun = noun_of(name)
        if noun is Noun.NONE and name in ("key", "keys"):  # `master key=…`
            before = _BEFORE.search(line[max(0, match.start() - 20) : match.start()])
            noun = noun_of(f"{before[1]}_{name}") if before else noun
        if noun is Noun.NONE:
            continue
        sign = _SIGN.match(line, match.start() + len(name)) or (
            _SAID_SIGN.match(line, match.end()) if noun > Noun.AMBIGUOUS else None
        )
        if sign is None:
            continue
        bare = sign[0].strip(" \t\"'`\\])")
        is_said = not bare or bare[0].isalpha()
        for value in _values(line, sign.end()):
            if _is_secret(value, noun, name, is_said=is_said, is_prose=sign[0].endswith(": ")):
                yield from _with_parts(value)


def _values(line: str, start: int) -> list[str]:
    """What stands behind a sign: one value, or those of a list, a tuple or a call."""
    if call := _CALL.match(line, start):
        quoted = _QUOTED.match(line, call.end())
        inside = quoted or _BARE.match(line, call.end())
        value = quoted["v"] if quoted else inside[0] if inside else ""
        return [value] if noun_of(value) is Noun.NONE else []
    if quoted := _QUOTED.match(line, start):
        before = line[start - 1 : start]
        if before == "(":
            return _items(line, start, ")")
        return [quoted["v"]]
    opening = line[start : start + 1]
    if opening in _CLOSING:
        return _items(line, start + 1, _CLOSING[opening])
    bare = _BARE.match(line, start)
    return [bare[0]] if bare else []


def _items(line: str, start: int, closing: str) -> list[str]:
    end = line.find(closing, start, start + LONGEST)
    inside = line[start : end if end >= 0 else start + LONGEST]
    found = _ITEM.findall(inside)
    names = [before[1] and before[0] in ("name", "user", "username", "type") for before in [("", ""), *found]]
    items = [
        value for (value, is_key), is_name in zip(found, names, strict=False) if not is_key and not is_name
    ]
    # Of a pair the first is whose the second is.
    return items[1:] if closing == ")" and len(items) == 2 else items


def _is_secret(value: str, noun: Noun, name: str, *, is_said: bool, is_prose: bool) -> bool:
    bare = value.rstrip(".,:;")
    if len(bare) < 4 or is_harmless(bare) or is_word(bare) or is_name(bare) or _NAME_SO.fullmatch(bare):
        return False
    if name.lower() == "authorization":  # without a word for its kind the whole value is one
        return is_odd(bare, is_password=True)
    if noun is Noun.AMBIGUOUS:
        return is_odd(bare) and not is_composed(bare) if name.lower() not in ("sas", "auth", "pass") else (
            is_odd(bare) or not (is_ordinary(bare) or is_composed(bare))
        )  # fmt: skip
    if is_said or is_prose:
        return is_odd(bare, 4, is_password=noun is Noun.PASSWORD) or not (
            is_ordinary(bare) or not bare.isalpha()
        )
    return not (noun is Noun.KEY and is_ordinary(bare))


_NAME_SO = regex(r"[\w-]*(?:Error|Exception|Warning)|[\w.]+\(.*")


def _with_parts(value: str) -> Iterator[str]:
    """A value, and of `svc:…` what is behind the name."""
    yield value
    bare = value.rstrip(".,;:)]}")
    if bare != value and len(bare) >= 4:
        yield bare
    _, sign, behind = bare.partition(":")
    if sign and len(behind) >= 4 and not behind.startswith("//"):
        yield behind


def _said(line: str) -> Iterator[str]:
    words = [_word(match[0]) for match in _WORD.finditer(line)]
    ends = [index for index, word in enumerate(words) if word.ends]
    for index in range(len(words)):
        noun = _noun_at(words, index)
        if noun is Noun.NONE:
            continue
        clause = bisect_left(ends, index)
        first = ends[clause - 1] + 1 if clause else 0
        last = ends[clause] if clause < len(ends) else len(words) - 1
        reach = FARTHEST[noun]
        for place in range(max(first, index - reach), min(last, index + reach) + 1):
            if place != index and _is_told(words, place, index, noun):
                yield from _with_parts(words[place].core)
    if code := _CODE.search(line):
        digits = _OF_CODE.match(line, code.end())
        if digits and not is_ordinary(digits[1]):
            yield digits[1]


def _word(raw: str) -> Word:
    core = raw.strip(_EDGES)
    return Word(
        raw,
        core,
        raw[:1] in _QUOTES and raw.rstrip(".,;:!?)")[-1:] in _QUOTES,
        _CLAUSE_ENDS.search(raw) is not None,
    )


def _noun_at(words: list[Word], index: int) -> Noun:
    core = words[index].core.lstrip("-")
    before = words[index - 1].core if index else ""
    if (before.lower(), core.lower()) in _IN_TWO_WORDS:
        return Noun.PASSWORD
    if _NAME.fullmatch(core) is None:
        return Noun.NONE
    noun = noun_of(core)
    if noun is not Noun.PASSWORD and before.isalpha() and len(before) < 16:
        noun = max(noun, noun_of(f"{before}_{core}"))  # `session key`
    # Of the ambiguous ones a sentence means a secret with this one alone.
    if noun is Noun.AMBIGUOUS and not core.lower().endswith("token"):
        return Noun.NONE
    return noun


def _is_told(words: list[Word], place: int, index: int, noun: Noun) -> bool:
    """Whether the word at `place` is the secret of the noun at `index`."""
    word = words[place]
    core = word.core
    if len(core) < 4 or is_harmless(core) or is_word(core) or is_name(core) or _NAME_SO.fullmatch(core):
        return False
    if "=" in core.rstrip("=") or noun_of(core) is not Noun.NONE or core.lower() in OWNERS:
        return False
    between = words[min(place, index) + 1 : max(place, index)]
    is_near = all(each.core.lower() in _LINKS for each in between)
    if place and words[place - 1].core.lower() in _NAMING and not (is_near and place > index):
        return False
    around = words[max(0, index - _AROUND) : index + _AROUND]
    if is_object(core, " ".join(each.raw[:_LONGEST_WORD] for each in around)):
        return False
    is_value = noun is Noun.KEY and place == index + 1 and "_" in words[index].core  # `hf_token …`
    is_password = noun is Noun.PASSWORD or is_value
    if is_odd(core, 4 if is_password else 6, is_password=is_password and is_near):
        return is_near or (noun > Noun.AMBIGUOUS and not is_composed(core))
    if noun is Noun.AMBIGUOUS or is_ordinary(core):
        return False
    is_list = is_password and place > index
    if word.is_quoted and (is_near or is_password):
        return True
    is_plain = core.isalpha() and core.isascii() and len(core) >= SHORTEST_PLAIN
    return is_plain and abs(place - index) <= FARTHEST_PLAIN and (is_near or is_list)
