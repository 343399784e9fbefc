"""Which lines of a piece call for a closer look, because a cause or a symptom may stand there.

Two ways to the same answer. Keywords: looked for in each distinct line without its digits. Patterns: first
on each distinct blur, which few pass, and then on the lines of those, by Hyperscan databases; lines whose
text is not what stands in the file (JSON, terminal escapes, other alphabets) then go the way of the keywords.
Both may name a line too many and never one too few: the `Matcher` decides.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import re2

from logtriage.intake.exports import is_exported, may_be_exported
from logtriage.intake.lines import plain, segments
from logtriage.mining.kinds import KEY_BYTES, Lines, text_of
from logtriage.regex import regex
from logtriage.rulebank.bank import rule_options
from logtriage.rulebank.blur import blur
from logtriage.rulebank.database import Databases, PatternDatabase, Patterns, is_loud, is_progress
from logtriage.rulebank.matcher import Matcher

MOST_REMEMBERED = 200_000  # texts whose called rules are remembered
FEW = 72  # lines of one blur: so few are asked one by one
MANY_BLURS = 2_000  # new ones in a piece: it is sooner looked through line by line
MANY_LINES = 20_000  # of a piece: they are searched together
MOST_ENDS = 20_000  # ends of matches taken from a database in one go; more are a storm
STORM = 64  # lines of one blur that make it a storm, when there are too many ends

# Signs for which a line's text is another one than stands in the file: control characters, and letters of
# more than one byte, which patterns over bytes count otherwise.
_SPECIAL = bytes(
    1 if code > 0x7E or (code < 0x20 and chr(code) not in "\t\n\r") else ord(" ") for code in range(256)
)


# JSON whose parts cannot be told from its blur: signs as numbers, texts that are joined from inner objects.
_UNTOLD = regex(rb'\{".*(?:\\u|\[ *0+ *,|: *\{)', re.DOTALL)
_ESCAPED = regex(r'\\(["\\/nrt])')
_MEANT = {"n": "\n", "r": "\n", "t": "\t"}
_BESIDE_TEXT = regex(r'"\s*[:,}\]]\s*"?|[{}]|"$')
_BEFORE_VALUE = regex(r'"\s*:\s*"?')
_BETWEEN_FIELDS = regex(r'"?\s*,\s*"|^.*?\{"')
_BEYOND_ASCII = regex(r"[^\x00-\x7e]")


class Form(Enum):
    """How a line's text is seen by rules."""

    PLAIN = "as it stands"
    FIELDS = "JSON: the message, and each field as key=value; a row: what was logged"
    ESCAPED = "in parts, with escapes undone"


# Lines of one blur, at either end, that are read to learn whether any of them is loud.
_SAMPLED = {Form.PLAIN: 0, Form.FIELDS: 4, Form.ESCAPED: 48}
_BETWEEN_FIELD_AND_VALUE = ('": "', '":"', '": ', '":')


@dataclass(frozen=True, slots=True)
class Called:
    """The rules (by their place in the bank) whose keywords stand in a text; shared by like texts."""

    rules: tuple[int, ...]
    is_loud: bool
    form: Form


class Calls:
    """Asks which lines may answer a rule; remembers what texts call, across pieces and files.

    `progress` are the rules that mark progress and neither cause nor symptom, by their place in the bank;
    `telling` are causes and symptoms, and what can void them.
    """

    def __init__(self, matcher: Matcher, databases: Databases | None) -> None:
        self._matcher = matcher
        self._databases = databases
        rules = matcher.bank.rules
        self._loud = frozenset(index for index, rule in enumerate(rules) if is_loud(rule))
        self.telling = self._loud.union(index for index, rule in enumerate(rules) if rule.voids)
        self.progress = frozenset(index for index, rule in enumerate(rules) if is_progress(rule))
        self._suspect: dict[bytes, bool] = {}  # blurs, as far as causes and symptoms are concerned
        self._marked: dict[bytes, bool] = {}  # and progress
        self._called: dict[bytes, Called] = {}
        self._shared: dict[tuple[tuple[int, ...], Form], Called] = {}

    def marked(self, lines: Lines) -> set[int]:
        """The codes of the kinds whose lines may match a rule that marks progress."""
        if self._databases is None:
            return {
                code
                for code, kind in lines.kinds.items()
                if not self.progress.isdisjoint(self.rules(lines.line(kind.first)))
            }
        patterns = self._databases.progress
        found, unasked = _suspects(lines, patterns, self._marked)
        for each in patterns if unasked else ():
            found.update(_by_patterns(lines, unasked, each.lines))
        return found

    def rules(self, line: bytes) -> tuple[int, ...]:
        """The rules whose keywords stand in this line, by their place in the bank."""
        return self._call(text_of(line)).rules

    def loud(self, lines: Lines) -> dict[int, list[int]]:
        """By code, the indices of the lines that a cause or symptom may match, in order."""
        if self._databases is None:
            asked: Sequence[int] = range(len(lines))
            if calm := self._calm(lines):
                asked = lines.of_codes((lines.kinds.keys() - calm).union(lines.rare))
            return self._by_keywords(lines, lines.by_code(asked))
        patterns = self._databases.loud
        suspects, unasked = _suspects(lines, patterns, self._suspect)
        otherwise = {code for code in suspects if _is_otherwise(lines.kinds[code].blur)}
        if lines.rare:
            if _is_otherwise(blur(lines.data)):
                otherwise.update(code for code in lines.rare if _is_otherwise(blur(lines.line(code))))
            unasked.update(code for code in lines.rare if code not in otherwise)
        found = self._by_keywords(lines, lines.by_code(lines.of_codes(otherwise)))
        if plain_ones := (suspects - otherwise) | unasked:
            parts = [_by_patterns(lines, plain_ones, each.lines) for each in patterns]
            for code in set().union(*parts):
                found[code] = sorted(set().union(*(part.get(code, ()) for part in parts)))
        return found

    def _calm(self, lines: Lines) -> set[int]:
        """The codes of kinds in which nothing varies, and whose one text calls no cause or symptom.

        A flood of them (millions of empty lines) is so never made into texts.
        """
        return {
            code
            for code, kind in lines.kinds.items()
            if b"0" not in kind.blur and not self._call(kind.blur).is_loud
        }

    def _by_keywords(self, lines: Lines, by_code: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for code, members in by_code.items():
            raw = lines.texts(members)
            calls = {text: self._call(text) for text in set(text_of(b"\n".join(raw)).split(b"\n"))}
            loud = {called for called in calls.values() if called.is_loud}
            if not loud:
                continue
            if len(members) <= FEW:
                texts = map(text_of, raw)
                found[code] = [
                    index for index, text in zip(members, texts, strict=True) if calls[text] in loud
                ]
            elif self._is_loud(raw, loud):
                found[code] = list(members)
        return found

    def _is_loud(self, raw: Sequence[bytes], loud: Collection[Called]) -> bool:
        """Whether any of these lines of one blur can hit a cause or symptom of those that they call.

        They are asked all at once, joined; where a rule sees parts of a line, a sample of them is read too.
        """
        form = next(iter(loud)).form
        sampled = _SAMPLED[form]
        if sampled and any(
            is_loud(hit.rule)
            for line in (*raw[:sampled], *raw[-sampled:])
            for hit in self._matcher.match_segments(segments(plain(line)))
        ):
            return True
        if form is Form.ESCAPED:
            return False
        joined = b"\n".join(raw).decode("utf-8", "replace")
        if form is Form.FIELDS:
            for between in _BETWEEN_FIELD_AND_VALUE:
                joined = joined.replace(between, "=")
        rules = self._loud.intersection(rule for called in loud for rule in called.rules)
        patterns = (self._matcher.bank.rules[rule].pattern for rule in sorted(rules))
        return any(_line_pattern(pattern, form).search(joined) is not None for pattern in patterns)

    def _call(self, text: bytes) -> Called:
        """What a text calls."""
        known = self._called.get(text)
        if known is not None:
            return known
        if len(self._called) > MOST_REMEMBERED:
            self._called.clear()
        rules = self._matcher.called(plain(text))
        form = Form.PLAIN
        if b"\\" in text or b"\r" in text or len(text) > KEY_BYTES:
            form = Form.ESCAPED
        elif b'{"' in text or is_exported(text):
            form = Form.FIELDS
        called = self._shared.setdefault((rules, form), Called(rules, not self._loud.isdisjoint(rules), form))
        if len(text) <= KEY_BYTES:
            self._called[text] = called
        return called


def _suspects(
    lines: Lines, patterns: Sequence[Patterns], remembered: dict[bytes, bool]
) -> tuple[set[int], set[int]]:
    """The codes of kinds in whose blur a pattern matches, and those of plain kinds that were not asked."""
    new: dict[int, bytes] = {}
    suspects = set()
    for code, kind in lines.kinds.items():
        known = remembered.get(kind.blur)
        if known is None:
            new[code] = kind.blur
        elif known:
            suspects.add(code)
    unasked: set[int] = set()
    if len(new) > MANY_BLURS:
        unasked = {code for code, each in new.items() if not _is_otherwise(each)}
        new = {code: each for code, each in new.items() if code not in unasked}
    if not new:
        return suspects, unasked
    named = {
        code
        for code, each in new.items()
        if _UNTOLD.search(each) or any(_may_match(asked.blurs, each) for asked in patterns)
    }
    if len(remembered) + len(new) > MOST_REMEMBERED:
        remembered.clear()
    remembered |= {each: code in named for code, each in new.items() if len(each) <= KEY_BYTES}
    return suspects | named, unasked


def _may_match(database: PatternDatabase, blurred: bytes) -> bool:
    if not _is_otherwise(blurred):
        return database.may_match(blurred)
    # What stands in the fields of a record cannot be told well enough to ask patterns in full.
    return any(database.may_match(line, in_full=False) for line in _on_lines(blurred))


def _by_patterns(lines: Lines, codes: Collection[int], database: PatternDatabase) -> dict[int, list[int]]:
    """Of the lines of these kinds those that a rule matches, or may match, by code.

    They are asked one by one, for of lines that are searched together a few are missed (see
    `PatternDatabase`); only so many that this would take long are searched so all the same.
    """
    indices = lines.of_codes(codes)
    if len(indices) <= MANY_LINES:
        asked = zip(indices, lines.texts(indices), strict=True)
        return lines.by_code([index for index, line in asked if database.may_match(line)])
    stormy: dict[int, list[int]] = {}
    rest = set(codes)
    while rest:
        indices = lines.of_codes(rest)
        # A part of a line behind a carriage return is matched as a line of its own.
        if len(indices) == len(lines):
            ends, is_all = database.ends(lines.data.replace(b"\r", b"\n"), MOST_ENDS)
            found = lines.at([max(0, end - 1) for end in ends]) if ends else []
        else:
            parts = lines.texts(indices)
            ends, is_all = database.ends(b"\n".join(parts).replace(b"\r", b"\n"), MOST_ENDS)
            found = sorted(set(_joined_at(indices, parts, ends)))
        hit = lines.by_code(found)
        if is_all:
            return stormy | hit
        # So many lines complain alike that naming each of them costs more than matching it: all lines
        # of such kinds are taken, and the rest is looked through again.
        more = {code for code, members in hit.items() if len(members) >= STORM}
        if not more:  # all of them different: each is matched
            return stormy | lines.by_code(indices)
        stormy |= lines.by_code(lines.of_codes(more))
        rest -= more
    return stormy


def _is_otherwise(blurred: bytes) -> bool:
    """Whether the text of a line, or of any of many, may be another one than stands in the file."""
    # JSON, and escapes as some programs show them.
    # Of megabytes one byte is found at once.
    shown = (
        (b"{" in blurred and b'{"' in blurred)
        or (b"#" in blurred and b"#000[" in blurred)
        or (b"^" in blurred and b"^[[" in blurred)
        or (b'"' in blurred and b'": "' in blurred)  # a field of a record that is printed over many lines
    )
    return shown or b"\x01" in blurred.translate(_SPECIAL) or may_be_exported(blurred)


def _on_lines(blurred: bytes) -> list[bytes]:
    """The parts that rules match on of a line whose text is another one, as far as its blur tells them."""
    text = plain(blurred)
    parts = segments(text)
    if '{"' in text:
        # Blurred numbers are none to a JSON reader: here is what stands in the fields, and they as key=value.
        text = _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), text)
        parts += [text, _BESIDE_TEXT.sub("\n", text), _BETWEEN_FIELDS.sub(" ", _BEFORE_VALUE.sub("=", text))]
    elif '": "' in text:
        parts.append(_ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), text.split('": "', 1)[1]))
    # Other alphabets have no part in patterns but as "any sign", which for patterns over bytes is one byte.
    return _BEYOND_ASCII.sub("\x7f", "\n".join(parts)).encode().split(b"\n")


def _joined_at(indices: Sequence[int], parts: Sequence[bytes], ends: Sequence[int]) -> list[int]:
    """Of lines that were joined by line ends, the indices of those in which these offsets stand."""
    starts = list(itertools.accumulate((len(part) + 1 for part in parts), initial=0))
    return [indices[bisect.bisect_right(starts, max(0, end - 1)) - 1] for end in ends if end <= starts[-1]]


@functools.cache
def _line_pattern(pattern: str, form: Form) -> Any:
    """A rule's pattern for text of many lines, in which ^ and $ stand at each line's ends.

    Where a message stands amid other fields they stand anywhere.
    """
    if form is Form.FIELDS:
        pattern = _ANCHOR.sub(lambda found: "" if found[0] in "^$" else found[0], pattern)
    return re2.compile(f"(?m:{pattern})", rule_options())


# Escaped characters and classes are passed over, so that an anchor is seen only where it is one.
_ANCHOR = regex(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[\^$]")
