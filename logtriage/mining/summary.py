"""What one pass over a piece of a file finds, in a form that can be merged.

Lines are reduced to *keys* (the line without its digits) in bulk; only keys are looked at one by one. A
key that a rule's keywords touch is matched line by line, because its digits may carry the answer
(Xid numbers, exit codes, ranks). `merge` is associative: line numbers and offsets are relative to the
summary's own start and shifted when two neighbours are joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from logtriage.intake.lines import plain, segments
from logtriage.model import SourceRole
from logtriage.rulebank.matcher import Hit, Matcher
from logtriage.rulebank.rule import Role

Key = bytes  # a line without its digits
Place = tuple[int, int]  # line (1-based) and byte offset, both relative to the summary's start

_DIGITS = b"0123456789"
KEY_BYTES = 2_048  # a longer key is cut: what names a line's kind stands at its head
KEPT_FIRST = 256  # places kept of one rule with the same captures: enough for one line of each rank
KEPT_LAST = 64
MOST_KEYS = 200_000  # distinct keys of one file; later new ones are counted as left out
STORM = 20_000  # lines of one key and piece that are matched one by one; of the rest every 64th
QUIET = 32  # a key whose first lines yield progress or context only …
QUIET_KEPT = 512  # … is matched at its last lines only


class AnyPiece(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def elided(self) -> int: ...


@dataclass(slots=True)
class KeyCount:
    """How often a key occurs, where first and last, and one raw line of it (the first)."""

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
    left_out: int = 0  # lines whose key was not kept, or that a storm's bound did not match

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
            known = self.hits.setdefault(hit_key, Sightings(0, [], []))
            extra = sightings.count - len(sightings.places())
            for place in map(shifted, sightings.places()):
                known.add(place)
            known.count += extra
        self.left_out += later.left_out
        self.lines += later.lines
        self.bytes += later.bytes


class Scanner:
    """The pass over one file's pieces: remembers which keys rules touch, across pieces and files."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._touched: dict[bytes, bool] = {}

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
        keys = data.translate(None, _DIGITS).split(b"\n")
        if not keys[-1] and (not data or data.endswith(b"\n")):
            keys.pop()
        summary = Summary(bytes=len(data) + elided, lines=data.count(b"\n"))
        if not keys:
            return summary
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
        starts = np.concatenate(([0], ends + 1))
        total = len(keys)
        first = dict(zip(reversed(keys), range(total - 1, -1, -1), strict=True))
        last = dict(zip(keys, range(total), strict=True))

        def line(index: int) -> bytes:
            stop = int(ends[index]) if index < len(ends) else len(data)
            return data[int(starts[index]) : stop]

        def place(index: int) -> Place:
            return index + 1, int(starts[index])

        touched: set[bytes] = set()
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
            if self._is_touched(key):
                touched.add(key)
        if touched:
            found: dict[bytes, list[int]] = {}
            for index, key in enumerate(keys):
                if key in touched:
                    found.setdefault(key, []).append(index)
            hits: list[tuple[int, Hit]] = []
            for indices in found.values():
                hits += self._match_lines(indices, line, where, summary)
            hits.sort(key=lambda item: item[0])
            for index, hit in hits:
                loud = hit.rule.role in (Role.CAUSE, Role.SYMPTOM)
                hit_key = (hit.rule.id, hit.captures if loud else ())
                summary.hits.setdefault(hit_key, Sightings(0, [], [])).add(place(index))
        return summary

    def _is_touched(self, key: bytes) -> bool:
        known = self._touched.get(key)
        if known is None:
            if len(self._touched) > MOST_KEYS:
                self._touched.clear()
            known = self._touched[key] = self._matcher.touches(plain(key))
        return known

    def _match_lines(
        self, indices: list[int], line: LineAt, where: SourceRole, summary: Summary
    ) -> list[tuple[int, Hit]]:
        hits: list[tuple[int, Hit]] = []
        loud = False
        chosen = indices[:QUIET]
        rest = indices[QUIET:]
        for index in chosen:
            for hit in self._matcher.match_segments(segments(plain(line(index))), where):
                hits.append((index, hit))
                loud = loud or hit.rule.role in (Role.CAUSE, Role.SYMPTOM)
        if not rest:
            return hits
        if not loud:
            kept = rest[-QUIET_KEPT:]
        elif len(rest) > STORM:
            kept = rest[: STORM // 2] + rest[STORM // 2 : -STORM // 2 : 64] + rest[-STORM // 2 :]
        else:
            kept = rest
        if loud:
            summary.left_out += len(rest) - len(kept)
        for index in kept:
            parts = segments(plain(line(index)))
            hits += [(index, hit) for hit in self._matcher.match_segments(parts, where)]
        return hits


class LineAt(Protocol):
    def __call__(self, index: int, /) -> bytes: ...
