"""What is kept of a stream that cannot be read from its middle on, while the pass reads it.

Close reading asks for the head and the tail of a file and for what stands around the places that the pass
found. Of a compressed file that would mean to decompress all of it again.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from logtriage.intake.reading import AFTER_BYTES, BEFORE_BYTES, HEAD_BYTES, TAIL_BYTES
from logtriage.intake.streams import Clippings
from logtriage.mining.summary import Summary

JOB_BYTES = 24 << 20  # kept of all files together, but of each …
LEAST_BYTES, MOST_BYTES = 96 << 10, 2 << 20  # … at least and at most this
_FIRST, _LAST = 8, 4  # places of a kind around which something is kept
_MOST_KINDS = 16  # of one rule, by what it captured
_HELD = 4  # so many times what is kept in the end may be held while the stream is read


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What stands around a place; offsets are those of the stream."""

    place: int
    start: int
    data: bytes


@dataclass(slots=True)
class _Around:
    """Stretches around the places of one kind: of the first ones and of the last ones."""

    first: list[_Stretch] = field(default_factory=list)
    last: deque[_Stretch] = field(default_factory=lambda: deque(maxlen=_LAST))


class Clipper:
    """Keeps the ends of a stream, and stretches around what was found in each of its blocks.

    `files` are those of the whole job, which share the memory; what the `sure` rules found may take more,
    so that a flood of complaints before it takes none away.
    """

    def __init__(self, files: int, sure: Collection[str] = ()) -> None:
        self._room = max(LEAST_BYTES, min(MOST_BYTES, JOB_BYTES // max(1, files)))
        self._above = min(BEFORE_BYTES, self._room // 16)
        self._below = min(AFTER_BYTES, self._room // 48)
        self._of_head = min(HEAD_BYTES, self._room // 8)
        self._of_tail = min(TAIL_BYTES, self._room // 4)
        self._head = self._tail = b""
        self._size = 0
        self._around: dict[object, _Around] = {}
        self._sure = sure
        self._captured: Counter[str] = Counter()  # kinds of each rule
        self._held = 0

    def add(self, data: bytes, elided: int, found: Summary) -> None:
        """The next block, and its summary. A line that was cut in its middle ends what the tail holds."""
        missing = self._of_head - self._size
        if missing > 0 and len(self._head) == self._size and not elided:
            self._head += data[:missing]
        if not elided:
            for key, offsets in self._kinds(found):
                most = _HELD * self._room * (2 if key[0] in self._sure else 1)
                if key in self._around or self._held < most:
                    self._keep(self._around.setdefault(key, _Around()), offsets, data)
        held = self._of_tail
        self._tail = b"" if elided else data[-held:] if len(data) >= held else (self._tail + data)[-held:]
        self._size += len(data) + elided

    def _kinds(self, found: Summary) -> Iterator[tuple[tuple[object, object], list[int]]]:
        """By what was found there, the offsets at which it begins in the block."""
        for (rule, captures), sightings in found.hits.items():
            kind: tuple[object, object] = rule, captures
            if kind not in self._around:
                self._captured[rule] += 1
                if self._captured[rule] > _MOST_KINDS:
                    kind = rule, None
            yield kind, [offset for _, offset in sightings.kept()]
        for shape, ends in found.steps.items():
            yield (None, shape), [offset for (_, offset), _ in ends.kept()]

    def _keep(self, around: _Around, offsets: Sequence[int], data: bytes) -> None:
        few = offsets if len(offsets) <= _FIRST + _LAST else [*offsets[:_FIRST], *offsets[-_LAST:]]
        for offset in few:
            start = max(0, offset - self._above)
            around_it = data[start : offset + self._below]
            stretch = _Stretch(self._size + offset, self._size + start, around_it)
            if len(around.first) < _FIRST:
                around.first.append(stretch)
            elif len(around.last) < _LAST:
                around.last.append(stretch)
            else:
                self._held -= len(around.last[0].data)
                around.last.append(stretch)
            self._held += len(around_it)

    def clippings(self, places: Sequence[tuple[int, int]] = ()) -> Clippings:
        """Head and tail, and as many of the other stretches as there is room for.

        Those around the `places` (line, offset), in their order, come first; of the others some of each kind.
        """
        chosen = [(0, self._head), (self._size - len(self._tail), self._tail)]
        spare = self._room - len(self._head) - len(self._tail)
        kinds = [[*around.first, *reversed(around.last)] for around in self._around.values()]
        by_place = {each.place: each for stretches in kinds for each in stretches}
        named = (by_place.get(offset) for _, offset in places)
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
        for each in dict.fromkeys(itertools.chain(named, in_turn)):
            if each is not None and len(each.data) <= spare:
                chosen.append((each.start, each.data))
                spare -= len(each.data)
        return Clippings(self._size, _joined(chosen))


def _joined(stretches: Sequence[tuple[int, bytes]]) -> tuple[tuple[int, bytes], ...]:
    """In order, those that overlap or touch as one."""
    joined: list[tuple[int, bytearray]] = []
    for start, data in sorted(stretches):
        behind = joined[-1][0] + len(joined[-1][1]) if joined else -1
        if start <= behind:
            joined[-1][1].extend(data[behind - start :])
        else:
            joined.append((start, bytearray(data)))
    return tuple((start, bytes(data)) for start, data in joined)
