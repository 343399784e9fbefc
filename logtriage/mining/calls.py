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
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import re2

from logtriage.intake.lines import plain, segments
from logtriage.mining.kinds import KEY_BYTES, Lines, text_of
from logtriage.rulebank.bank import rule_options
from logtriage.rulebank.database import Databases, PatternDatabase, is_loud
from logtriage.rulebank.matcher import Matcher

MOST_REMEMBERED = 200_000  # texts whose called rules are remembered
FEW = 72  # lines of one blur: so few are asked one by one
MOST_ENDS = 20_000  # ends of matches taken from a database in one go; more are a storm
STORM = 64  # lines of one blur that make it a storm, when there are too many ends

# What makes a line's text another one than stands in the file: JSON, escapes, control characters, and
# letters of more than one byte, which patterns over bytes count otherwise.
_OTHERWISE = re.compile(rb'\{"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xff]|#000\[|\^\[\[')


# JSON whose parts cannot be told from its blur: signs as numbers, texts that are joined from inner objects.
_UNTOLD = re.compile(rb'\{".*(?:\\u|\[ *0+ *,|: *\{)', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\/nrt])')
_BESIDE_TEXT = re.compile(r'"\s*[:,]\s*"?|[{}]|"$')
_BEFORE_VALUE = re.compile(r'"\s*:\s*"?')
_BETWEEN_FIELDS = re.compile(r'"?\s*,\s*"|^.*?\{"')
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


class Form(Enum):
    """How a line's text is seen by rules."""

    PLAIN = "as it stands"
    FIELDS = "JSON: the message, and each field as key=value"
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

    def __init__(self, matcher: Matcher, databases: Sequence[Databases]) -> None:
        self._matcher = matcher
        self._databases = databases
        rules = matcher.bank.rules
        self._loud = frozenset(index for index, rule in enumerate(rules) if is_loud(rule))
        self.telling = self._loud.union(index for index, rule in enumerate(rules) if rule.voids)
        self.progress = frozenset(
            index for index, rule in enumerate(rules) if rule.marks is not None and not is_loud(rule)
        )
        self._suspect: dict[bytes, bool] = {}
        self._called: dict[bytes, Called] = {}
        self._shared: dict[tuple[tuple[int, ...], Form], Called] = {}

    def marked(self, line: bytes) -> bool:
        """Whether a rule that marks progress may match this line."""
        return not self.progress.isdisjoint(self.rules(line))

    def rules(self, line: bytes) -> tuple[int, ...]:
        """The rules whose keywords stand in this line, by their place in the bank."""
        return self._call(text_of(line)).rules

    def loud(self, lines: Lines) -> list[int]:
        """The indices of the lines that a cause or symptom may match, in order."""
        if not self._databases:
            return self._by_keywords(lines, range(len(lines)))
        suspects = self._suspects(lines)
        otherwise = {code for code in suspects if _OTHERWISE.search(lines.kinds[code].blur)}
        found = set(self._by_keywords(lines, lines.of_codes(otherwise)))
        if plain_ones := lines.of_codes(suspects - otherwise):
            for database in self._databases:
                found.update(_by_patterns(lines, plain_ones, database.lines))
        return sorted(found)

    def _suspects(self, lines: Lines) -> set[int]:
        """The codes of those blurs in which a pattern of a cause or symptom matches."""
        new: dict[int, bytes] = {}
        suspects = set()
        for code, kind in lines.kinds.items():
            known = self._suspect.get(kind.blur)
            if known is None:
                new[code] = kind.blur
            elif known:
                suspects.add(code)
        if not new:
            return suspects
        named = {code for code, each in new.items() if _UNTOLD.search(each)}
        codes = [code for code in new if code not in named]
        texts = [_on_lines(new[code]) for code in codes]
        for database in self._databases:
            ends, is_all = database.blurs.ends(b"\n".join(texts), MOST_ENDS)
            named.update(_joined_at(codes, texts, ends) if is_all else codes)
        if len(self._suspect) + len(new) > MOST_REMEMBERED:
            self._suspect.clear()
        self._suspect |= {each: code in named for code, each in new.items() if len(each) <= KEY_BYTES}
        return suspects | named

    def _by_keywords(self, lines: Lines, indices: Sequence[int]) -> list[int]:
        by_code: dict[int, list[int]] = {}
        for index in indices:
            by_code.setdefault(int(lines.codes[index]), []).append(index)
        found: list[int] = []
        for members in by_code.values():
            raw = [lines.line(index) for index in members]
            calls = {text: self._call(text) for text in set(text_of(b"\n".join(raw)).split(b"\n"))}
            loud = {called for called in calls.values() if called.is_loud}
            if not loud:
                continue
            if len(members) <= FEW:
                texts = map(text_of, raw)
                found += [index for index, text in zip(members, texts, strict=True) if calls[text] in loud]
            elif self._is_loud(raw, loud):
                found += members
        return sorted(found)

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
        elif b'{"' in text:
            form = Form.FIELDS
        called = self._shared.setdefault((rules, form), Called(rules, not self._loud.isdisjoint(rules), form))
        if len(text) <= KEY_BYTES:
            self._called[text] = called
        return called


def _by_patterns(lines: Lines, indices: Sequence[int], database: PatternDatabase) -> set[int]:
    """Of these lines those that a pattern may match."""
    found: set[int] = set()
    rest = list(indices)
    stormy: set[int] = set()
    while True:
        # A part of a line behind a carriage return is matched as a line of its own.
        parts = [lines.line(index) for index in rest]
        ends, is_all = database.ends(b"\n".join(parts).replace(b"\r", b"\n"), MOST_ENDS)
        found.update(_joined_at(rest, parts, ends))
        if is_all:
            return found
        # So many lines complain alike that naming each of them costs more than matching it: all lines
        # of such kinds are taken, and the rest is looked through again.
        counts = Counter(int(lines.codes[index]) for index in found)
        more = {code for code, count in counts.items() if count >= STORM} - stormy
        if not more:  # all of them different: each is matched
            return set(indices)
        stormy |= more
        found.update(index for index in rest if int(lines.codes[index]) in more)
        rest = [index for index in rest if int(lines.codes[index]) not in more]


def _on_lines(blur: bytes) -> bytes:
    """The parts of a line that rules match on, as far as its blur tells them, each on a line of its own."""
    if not _OTHERWISE.search(blur):
        return blur.replace(b"\r", b"\n")
    text = plain(blur)
    parts = segments(text)
    if '{"' in text:
        # Blurred numbers are none to a JSON reader: here is what stands in the fields, and they as key=value.
        text = _ESCAPED.sub(lambda found: "\n" if found[1] in "nr" else found[1], text)
        parts += [_BESIDE_TEXT.sub("\n", text), _BETWEEN_FIELDS.sub(" ", _BEFORE_VALUE.sub("=", text))]
    # Other alphabets have no part in patterns but as "any sign", which for patterns over bytes is one byte.
    return _BEYOND_ASCII.sub("\x7f", "\n".join(parts).replace("\r", "\n")).encode()


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
_ANCHOR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[\^$]")
