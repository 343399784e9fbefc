"""What one pass over a piece of a file finds, in a form that can be merged.

Lines are reduced in bulk, twice. Their *shape* (the line without digits and without the letters of
hexadecimal numbers) is what templates are made of: a job's million lines have some thousand shapes. Their
*text* (the line without digits) decides whether a rule's keywords call for a closer look; then the lines
themselves are matched, because their digits may carry the answer (Xid numbers, exit codes, ranks).
`append` is associative: line numbers and offsets are relative to the summary's own start and shifted
when two neighbours are joined.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import re2

from logtriage.intake.lines import plain, segments
from logtriage.model import SourceRole
from logtriage.rulebank.bank import rule_options
from logtriage.rulebank.matcher import Hit, Matcher
from logtriage.rulebank.rule import Role

Key = bytes  # a line without its digits
Place = tuple[int, int]  # line (1-based) and byte offset, both relative to the summary's start

_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
SHAPE_LEAST = 4  # a shape shorter than this says nothing; the text takes its place
KEY_BYTES = 2_048  # a longer shape is cut: what names a line's kind stands at its head
KEPT_FIRST = 256  # places kept of one rule with the same captures: enough for one line of each rank
KEPT_LAST = 64
MOST_KEYS = 200_000  # distinct shapes of one file; later new ones are counted as left out
QUIET_FIRST = 8  # of a shape that shows nothing but progress, the first lines of a piece are matched …
QUIET_LAST = 64  # … and the last, enough for one of each rank
MOST_CAPTURES = 4_000  # different captures of one rule that are told apart in a file
MOST_MATCHED = 20_000  # kinds of lines that call the same rules, matched in one piece
ESCAPED_FIRST = 48  # lines of a shape with escaped text that decide whether it is quiet, at either end


class AnyPiece(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def elided(self) -> int: ...


@dataclass(slots=True)
class KeyCount:
    """How often a shape occurs, where first and last, and one raw line of it (the first)."""

    count: int
    first: Place
    last: Place
    sample: bytes


@dataclass(slots=True)
class Sightings:
    """Where a rule with the same captures was seen: all counted, the first and last places kept."""

    count: int
    first: list[Place]
    last: list[Place]

    def add(self, place: Place) -> None:
        self.count += 1
        if len(self.first) < KEPT_FIRST:
            self.first.append(place)
        else:
            self.last.append(place)
            if len(self.last) > KEPT_LAST:
                del self.last[0]

    def places(self) -> list[Place]:
        return self.first + self.last


HitKey = tuple[str, tuple[tuple[str, str], ...]]  # rule id and, of causes and symptoms, captures


@dataclass(slots=True)
class Summary:
    """One piece, several neighbouring pieces, or a whole file."""

    bytes: int = 0
    lines: int = 0
    keys: dict[Key, KeyCount] = field(default_factory=dict)
    hits: dict[HitKey, Sightings] = field(default_factory=dict)
    left_out: int = 0  # lines whose shape was not kept
    unmatched: int = 0  # lines that were not matched, since too many different ones called the same rules
    captured: Counter[str] = field(default_factory=Counter)  # different captures of each rule in `hits`

    def append(self, later: Summary) -> None:
        """Join the summary of what follows directly after this one."""

        def shifted(place: Place) -> Place:
            return place[0] + self.lines, place[1] + self.bytes

        for key, count in later.keys.items():
            mine = self.keys.get(key)
            if mine is not None:
                mine.count += count.count
                mine.last = shifted(count.last)
            elif len(self.keys) < MOST_KEYS:
                self.keys[key] = KeyCount(
                    count.count, shifted(count.first), shifted(count.last), count.sample
                )
            else:
                self.left_out += count.count
        for hit_key, sightings in later.hits.items():
            known = self._sightings(hit_key)
            extra = sightings.count - len(sightings.places())
            for place in map(shifted, sightings.places()):
                known.add(place)
            known.count += extra
        self.left_out += later.left_out
        self.unmatched += later.unmatched
        self.lines += later.lines
        self.bytes += later.bytes

    def _sightings(self, hit_key: HitKey) -> Sightings:
        """Those of a rule and its captures; beyond the bound, those of the rule alone."""
        known = self.hits.get(hit_key)
        if known is None:
            rule, captures = hit_key
            if captures and self.captured[rule] >= MOST_CAPTURES:
                hit_key = rule, ()
            elif captures:
                self.captured[rule] += 1
            known = self.hits.setdefault(hit_key, Sightings(0, [], []))
        return known

    def saw(self, hit: Hit, place: Place) -> None:
        """Note where a rule was hit; captures tell causes and symptoms apart, not the rest."""
        loud = hit.rule.role in (Role.CAUSE, Role.SYMPTOM)
        self._sightings((hit.rule.id, hit.captures if loud else ())).add(place)


class Scanner:
    """The pass over files' pieces: remembers which rules a key's keywords call, across pieces and files."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._called: dict[bytes, Called] = {}
        self._kinds: dict[tuple[tuple[int, ...], bool], Called] = {}

    def scan(self, pieces: Iterable[AnyPiece], where: SourceRole) -> Summary:
        """The summary of a whole file."""
        whole = Summary()
        for piece in pieces:
            whole.append(self.scan_piece(piece.data, where, elided=piece.elided))
        return whole

    def scan_piece(self, data: bytes, where: SourceRole, *, elided: int = 0) -> Summary:
        """The summary of a piece that begins at a line's start.

        `elided` bytes were left out of the middle of a piece that is one very long line.
        """
        texts = data.translate(None, _DIGITS).split(b"\n")
        shapes = data.translate(None, _HEX).split(b"\n")
        if not texts[-1] and (not data or data.endswith(b"\n")):
            texts.pop()
            shapes.pop()
        keys = [
            shape if len(shape) >= SHAPE_LEAST else text for shape, text in zip(shapes, texts, strict=True)
        ]
        summary = Summary(bytes=len(data) + elided, lines=data.count(b"\n"))
        if not keys:
            return summary
        starts = line_starts(data)
        total = len(keys)
        first = dict(zip(reversed(keys), range(total - 1, -1, -1), strict=True))
        last = dict(zip(keys, range(total), strict=True))

        def line(index: int) -> bytes:
            stop = int(starts[index + 1]) - 1 if index + 1 < len(starts) else len(data)
            return data[int(starts[index]) : stop]

        def place(index: int) -> Place:
            return index + 1, int(starts[index])

        for key, count in Counter(keys).items():
            short = key if len(key) <= KEY_BYTES else key[:KEY_BYTES]
            if (known := summary.keys.get(short)) is not None:
                known.count += count
                known.last = max(known.last, place(last[key]))
            elif len(summary.keys) < MOST_KEYS:
                sample = line(first[key])[: KEY_BYTES * 2]
                summary.keys[short] = KeyCount(count, place(first[key]), place(last[key]), sample)
            else:
                summary.left_out += count
        called = {text: self._call(text) for text in set(texts)}
        called = {text: rules for text, rules in called.items() if rules.any}
        if called:
            found: dict[tuple[bytes, Called], list[int]] = {}
            for index, text in enumerate(texts):
                if text in called:
                    found.setdefault((keys[index], called[text]), []).append(index)
            hits: list[tuple[int, Hit]] = []
            matched: Counter[Called] = Counter()
            for (_, rules), indices in found.items():
                # Of a like kind of line as of a storm: the first are told apart, more of them tell no more.
                if matched[rules] < MOST_MATCHED:
                    hits += self._match_lines(indices, line, where, rules)
                    matched[rules] += 1
                else:
                    summary.unmatched += len(indices)
            hits.sort(key=lambda item: item[0])
            for index, hit in hits:
                summary.saw(hit, place(index))
        return summary

    def _call(self, text: bytes) -> Called:
        known = self._called.get(text)
        if known is not None:
            return known
        if len(self._called) > MOST_KEYS:
            self._called.clear()
        rules = self._matcher.called(plain(text))
        # In escaped text (JSON) and in progress bars a rule sees parts of the line, not the line.
        is_plain = b"\\" not in text and b"\r" not in text and len(text) <= KEY_BYTES
        called = self._kinds.setdefault((rules, is_plain), Called(rules, is_plain))
        self._called[text if len(text) <= KEY_BYTES else text[:KEY_BYTES]] = called
        return called

    def _match_lines(
        self, indices: list[int], line: LineAt, where: SourceRole, called: Called
    ) -> list[tuple[int, Hit]]:
        """The hits on all lines of one key.

        Whether any of them can hit a cause or symptom is asked once, of all lines joined; only then
        they are matched one by one. Of what merely shows progress, the first and last lines are enough.
        """
        chosen = indices
        if len(indices) > QUIET_FIRST + QUIET_LAST and not self._is_loud(indices, line, called):
            chosen = indices[:QUIET_FIRST] + indices[-QUIET_LAST:]
        return [
            (index, hit)
            for index in chosen
            for hit in self._matcher.match_segments(segments(plain(line(index))), where)
        ]

    def _is_loud(self, indices: list[int], line: LineAt, called: Called) -> bool:
        loud = [
            rule
            for rule in map(self._matcher.bank.rules.__getitem__, called.rules)
            if rule.role in (Role.CAUSE, Role.SYMPTOM)
        ]
        if not loud:
            return False
        if not called.is_plain:
            return any(
                hit.rule.role in (Role.CAUSE, Role.SYMPTOM)
                for index in (*indices[:ESCAPED_FIRST], *indices[-ESCAPED_FIRST:])
                for hit in self._matcher.match_segments(segments(plain(line(index))))
            )
        joined = b"\n".join([line(index) for index in indices]).decode("utf-8", "replace")
        return any(line_pattern(rule.pattern).search(joined) is not None for rule in loud)


@dataclass(frozen=True, slots=True)
class Called:
    """The rules (by their place in the bank) whose keywords stand in a text; shared by like texts."""

    rules: tuple[int, ...]
    is_plain: bool

    @property
    def any(self) -> bool:
        return bool(self.rules)


NUMPY_PAYS = 1 << 20  # bytes; below this, importing numpy costs more than it saves


def line_starts(data: bytes) -> Sequence[int]:
    """The offsets at which lines begin, with one more after a last line end."""
    if len(data) < NUMPY_PAYS:
        return [0, *itertools.accumulate(len(line) + 1 for line in data.split(b"\n")[:-1])]
    import numpy as np

    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
    starts: Any = np.concatenate(([0], ends + 1))
    return starts  # type: ignore[no-any-return]


@functools.cache
def line_pattern(pattern: str) -> Any:
    """A rule's pattern for text of many lines, in which ^ and $ stand at each line's ends."""
    return re2.compile(f"(?m:{pattern})", rule_options())


class LineAt(Protocol):
    def __call__(self, index: int, /) -> bytes: ...
