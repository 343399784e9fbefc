"""The lines of a piece told apart in bulk, at C speed: which of them are alike but for their numbers.

Lines of one *blur* (see `rulebank.blur`) are counted together: it is as long as the line, so that it costs
one table look-up a byte. What is left of a blur without its zeros is the line's *shape*, the same for numbers
of any length.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logtriage.mining.slices import LANE_BITS, WHOLE, packed
from logtriage.rulebank.blur import blur

_DIGITS = b"0123456789"
SHAPE_LEAST = 4  # a shape shorter than this says nothing; the line without its digits takes its place
KEY_BYTES = 1_024  # a longer shape is cut: what names a line's kind stands at its head
MOST_KINDS = 4_096  # of a piece that are told apart: the commonest, and of them the first
FEW_INDICES = 64  # are sooner sorted by hand
TALLY_LEAST = 1 << 10  # bytes; fewer are told apart by hand before arrays are made for them
MOST_TEXTS = 1 << 16  # lines of hardly any shape that are texts at the same time
DENSE = 1 << 20  # line ends of one piece: by hand so many lines took most of a gigabyte, whatever they say


@dataclass(frozen=True, slots=True)
class Sliced:
    """Where in its file a piece begins, and how long the slices are in which its lines are counted."""

    offset: int = 0
    shift: int = WHOLE

    def of(self, start: int) -> int:
        """The slice in which a line lies that begins at this byte of the piece."""
        return (self.offset + start) >> self.shift

    def begin(self, slice: int) -> int:
        """At which byte of the piece a slice begins; negative for the first one."""
        return (slice << self.shift) - self.offset


_ONE_SLICE = Sliced()


@dataclass(frozen=True, slots=True)
class Kind:
    """The lines of one blur: the indices of the first and the last of them, how many there are, and where.

    `slices` are the counts by the slices of the file (see `slices`).
    """

    blur: bytes
    first: int
    last: int
    count: int
    slices: int


@dataclass(frozen=True, slots=True)
class Lines:
    """A piece of a file as lines, which are known by their index from 0.

    `starts` holds the offset of each line and, last, that behind the piece (plus one where the last line
    lacks its end). `codes` gives for each line the index of the first line of its blur, and `kinds` the
    kinds by that index, without the `rare` ones, whose codes are all that is known of them.
    """

    data: bytes
    sliced: Sliced
    starts: Any  # lists, or arrays for a large piece
    codes: Any
    kinds: Mapping[int, Kind]
    rare: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.codes)

    def place(self, index: int) -> tuple[int, int]:
        """Number, from 1, and offset of a line."""
        return index + 1, int(self.starts[index])

    def line(self, index: int) -> bytes:
        return self.data[int(self.starts[index]) : int(self.starts[index + 1]) - 1]

    def texts(self, indices: Sequence[int]) -> list[bytes]:
        """Many lines at once."""
        if isinstance(self.starts, list) or len(indices) < FEW_INDICES:
            return [self.line(index) for index in indices]
        import numpy as np

        chosen = np.asarray(indices)
        begins, ends = self.starts[chosen].tolist(), (self.starts[chosen + 1] - 1).tolist()
        return [self.data[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def of_codes(self, codes: Collection[int]) -> Sequence[int]:
        """The indices of the lines whose blur is one of these, in order."""
        if not codes:
            return []
        if isinstance(self.codes, list):
            return [index for index, code in enumerate(self.codes) if code in codes]
        import numpy as np

        found: list[int] = np.flatnonzero(self._chosen(codes)).tolist()
        return found

    def by_code(self, indices: Sequence[int]) -> dict[int, list[int]]:
        """These lines by their codes, each code's in order."""
        if isinstance(self.codes, list) or len(indices) < FEW_INDICES:
            found: dict[int, list[int]] = {}
            for index in indices:
                found.setdefault(int(self.codes[index]), []).append(index)
            return found
        import numpy as np

        chosen = np.asarray(indices)
        groups = (chosen[same] for same in alike(self.codes[chosen]))
        return {int(self.codes[group[0]]): group.tolist() for group in groups}

    def ends_of(self, codes: Collection[int], first: int, last: int) -> dict[int, list[int]]:
        """By code, the indices of its first and last lines, in order; a line is named once."""
        named: dict[int, list[int]] = {}
        if isinstance(self.codes, list):
            for index in self.of_codes(codes):
                named.setdefault(self.codes[index], []).append(index)
        elif codes:
            import numpy as np

            indices = np.flatnonzero(self._chosen(codes))
            for same in alike(self.codes[indices]):
                # Converting only what is kept: a kind can have a hundred thousand lines.
                few = indices[same]
                if len(few) > first + last:
                    few = np.concatenate((few[:first], few[-last:]))
                named[int(self.codes[few[0]])] = few.tolist()
        return {
            code: indices if len(indices) <= first + last else indices[:first] + indices[-last:]
            for code, indices in named.items()
        }

    def _chosen(self, codes: Collection[int]) -> Any:
        import numpy as np

        flags = np.zeros(len(self.codes), dtype=bool)
        flags[list(codes)] = True
        return flags[self.codes]

    def at(self, offsets: Sequence[int]) -> list[int]:
        """The indices of the lines in which these bytes stand, in order, each once."""
        import numpy as np

        inside = np.searchsorted(np.asarray(self.starts), np.unique(np.asarray(offsets)), side="right") - 1
        found: list[int] = np.unique(inside).tolist()
        return [index for index in found if 0 <= index < len(self.codes)]


def alike(codes: Any) -> list[Any]:
    """The positions of equal codes of an array, as one array for each code, in order."""
    import numpy as np

    ordered = np.argsort(codes, kind="stable")
    return np.split(ordered, np.flatnonzero(np.diff(codes[ordered])) + 1)


def lines_of(data: bytes, sliced: Sliced = _ONE_SLICE, *, in_bulk: bool = False) -> Lines:
    """The lines of a piece that begins at a line's start; a last line without its end is one too.

    `in_bulk` is for much data: see `tally`. What is found is the same.
    """
    in_bulk = in_bulk or (len(data) >= DENSE and data.count(b"\n") >= DENSE)
    if not in_bulk or len(data) < TALLY_LEAST:
        return _by_hand(data, sliced)
    from logtriage.mining.tally import tally

    return _of_tally(data, sliced, *tally(data, sliced.offset, sliced.shift, MOST_KINDS))


def _by_hand(data: bytes, sliced: Sliced) -> Lines:
    blurs = blur(data).split(b"\n")
    if not blurs[-1]:
        blurs.pop()
    known: dict[bytes, int] = {}
    codes = list(map(known.setdefault, blurs, range(len(blurs))))
    starts = [0, *itertools.accumulate(len(each) + 1 for each in blurs)]
    slices: dict[int, int] = {}
    counts: Counter[int] = Counter()
    begin = 0
    for number in range(sliced.of(0), sliced.of(max(0, len(data) - 1)) + 1):
        end = bisect.bisect_left(starts, sliced.begin(number + 1), begin, len(codes))
        counted = Counter(codes[begin:end])
        for code, count in counted.items():
            slices[code] = slices.get(code, 0) + (count << (LANE_BITS * number))
        counts.update(counted)
        begin = end
    last = dict(zip(codes, range(len(blurs)), strict=True))
    # Equal counts stand in the order in which they were first met.
    rare = [first for first, _ in counts.most_common()[MOST_KINDS:]] if len(known) > MOST_KINDS else []
    left_out = frozenset(rare)
    kinds = {
        first: Kind(each, first, last[first], counts[first], slices[first])
        for each, first in known.items()
        if first not in left_out
    }
    return Lines(data, sliced, starts, codes, kinds, rare)


def _of_tally(
    data: bytes,
    sliced: Sliced,
    starts: Any,
    codes: Any,
    first: Any,
    last: Any,
    counts: Any,
    by_slice: Any,
) -> Lines:
    import numpy as np

    chosen, rare = np.arange(len(first)), first[:0]
    width = by_slice.shape[1]
    if len(first) > MOST_KINDS:
        by_count = np.lexsort((first, -counts))
        chosen, rare = np.sort(by_count[:MOST_KINDS]), first[by_count[MOST_KINDS:]]
        # The table holds those that came first, which are not these.
        rows = np.full(len(codes), -1)
        rows[first[chosen]] = np.arange(len(chosen))
        numbers = ((starts[:-1] + sliced.offset) >> sliced.shift) - sliced.of(0)
        places = (rows[codes] * width + numbers)[rows[codes] >= 0]
        by_slice = np.bincount(places, minlength=len(chosen) * width).astype(np.uint32)
    columns = first, starts[first], starts[first + 1] - 1, last, counts
    told = zip(*(column[chosen].tolist() for column in columns), strict=True)
    lanes, size, before = by_slice.tobytes(), width * by_slice.itemsize, sliced.of(0)
    kinds = {
        index: Kind(
            blur(data[begin:end]), index, stop, number, packed(lanes[row * size : (row + 1) * size], before)
        )
        for row, (index, begin, end, stop, number) in enumerate(told)
    }
    return Lines(data, sliced, starts, codes, kinds, rare.tolist())


def shape_of(blur: bytes) -> bytes:
    """What is left of a blur without its zeros; shorter than SHAPE_LEAST where that is almost nothing."""
    return blur.replace(b"0", b"")[:KEY_BYTES]


def text_of(line: bytes) -> bytes:
    """A line, or many, without digits: what keywords are looked for in."""
    return line.translate(None, _DIGITS)


def keyed(lines: Lines) -> Iterator[tuple[bytes, Kind]]:
    """Each kind with its key: the shape, or for lines of hardly any shape the text, line by line."""
    shapeless: set[int] = set()
    for kind in lines.kinds.values():
        shape = shape_of(kind.blur)
        if len(shape) >= SHAPE_LEAST:
            yield shape, kind
        elif b"0" not in kind.blur:  # nothing varies in it: empty lines, rules of dashes
            yield kind.blur[:KEY_BYTES], kind
        else:
            shapeless.add(kind.first)
    indices = lines.of_codes(shapeless)
    for begin in range(0, len(indices), MOST_TEXTS):
        some = indices[begin : begin + MOST_TEXTS]
        for index, line in zip(some, lines.texts(some), strict=True):
            text = text_of(line)[:KEY_BYTES]
            number = lines.sliced.of(int(lines.starts[index]))
            yield text, Kind(text, index, index, 1, 1 << (LANE_BITS * number))


def key_of(line: str) -> bytes:
    """The key of the kind of one line, without its end."""
    raw = line.encode("utf-8", "replace")
    shape = shape_of(blur(raw))
    return shape if len(shape) >= SHAPE_LEAST else text_of(raw)[:KEY_BYTES]
