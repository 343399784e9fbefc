"""Close reading: whole small files, and of large ones the windows that matter, line by line.

The fast pass (mining) looks at every byte but only at distinct lines. What decides a verdict needs
more: which rank wrote a line, when, inside which traceback. That costs Python time for each line, so it
is spent on the heads and tails of files and around the places that the pass found.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from logtriage.forks import shared_out
from logtriage.intake.layout import MOST_LINES, Layout, completed, learn_layout
from logtriage.intake.lines import LineReader
from logtriage.intake.streams import Clippings, StreamFault, read_ranges
from logtriage.model import Line, Source
from logtriage.regex import regex

WHOLE_BYTES = 512 << 10  # a file up to this size is read whole
HEAD_BYTES = 48 << 10
TAIL_BYTES = 192 << 10
BEFORE_BYTES = 12 << 10  # around a place: a traceback stands before its last line
AFTER_BYTES = 4 << 10
SAMPLE_BYTES = 64 << 10  # of its head and of its tail, to learn how a file's lines are built
JOB_LINES = 5_000  # the same for all files of a job together, but of each …
LEAST_LINES = 32  # … at least so many of its head and of its tail
JOB_BYTES = 4 << 20  # of files that are read whole, together; of large files …
WINDOWS_BYTES = 2 << 20  # … all windows together, shared out among these, but for each share …
LEAST_WINDOWS = 8 << 10  # … at least this, as long as these come to …
LEASTS_BYTES = 4 << 20  # … no more than this, and else …
LEAST_OF_ALL = 3 << 10  # … this: of thousands of ranks nearly all say the same
AGAIN_BYTES = 32 << 20  # a larger compressed file is not decompressed again for what was not kept of it
# From so many shares on, since many ranks and hosts say the same: of windows half, of whole files an eighth.
MANY_SHARES = 64
LINE_BYTES = 40  # what a line costs, however short, in bytes of ordinary lines
SHARED_BYTES = 384 << 10  # some 4,000 lines; below this, copies of the process cost more than they save


# Of a file: (start, stop, line, offset), where line and offset are one known place. What is read goes from
# the first line that begins there to the end of the last one.
Window = tuple[int, int, int, int]
# ((offset, number of the first line), bytes), from a line's start.
Block = tuple[tuple[int, int], bytes]


@dataclass(frozen=True, slots=True)
class Reading:
    """The closely read lines of one file, in order; `whole` is False where gaps were left.

    `layout` reads further lines of it, and `labelled` are the ranks of labels that only such lines told.
    """

    source: Source
    lines: tuple[Line, ...]
    whole: bool
    layout: Layout = field(default_factory=Layout)
    earlier: int = 0  # lines of the file that are left out, since an earlier run wrote them
    labelled: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extent:
    """What the pass knows of a file: its decompressed size, its line ends, and places worth reading.

    Of the windows of all large files it gets `share` times as much as one with a single share. `kept` is
    what need not be read again.
    """

    bytes: int
    lines: int
    places: tuple[tuple[int, int], ...]  # (line, offset), most telling first
    share: int = 1
    kept: Clippings | None = None

    @property
    def weight(self) -> int:
        """What reading all of it would cost, in bytes of ordinary lines."""
        return max(self.bytes, self.lines * LINE_BYTES)


@dataclass(frozen=True, slots=True)
class Choice:
    """What of one file is to be read closely: pieces of it, or all that it holds."""

    source: Source
    blocks: Sequence[Block]
    whole: bool
    layout: Layout

    @property
    def size(self) -> int:
        """Bytes that are read."""
        return sum(len(data) for _, data in self.blocks)

    def read(self) -> Reading:
        return Reading(self.source, _read(self.source, self.layout, self.blocks), self.whole, self.layout)


def chosen(
    root: Path, sources: Sequence[Source], extents: Sequence[Extent], *, processes: int = 1
) -> list[Choice]:
    """Choose of each source as much as the job's budget allows (see the constants of this module)."""
    year = _year(root, sources, extents)
    whole_limit = _whole_limit(extents, JOB_BYTES)
    windows = WINDOWS_BYTES
    if _shares(extents, whole_limit) >= MANY_SHARES:
        whole_limit = min(whole_limit, _whole_limit(extents, JOB_BYTES // 8))
        windows = WINDOWS_BYTES // 2
    shares = _shares(extents, whole_limit)
    least = min(LEAST_WINDOWS, max(LEAST_OF_ALL, LEASTS_BYTES // max(1, shares)))
    budget = max(least, windows // max(1, shares))
    portions = _portions(sources) if shares >= MANY_SHARES else [_LAST_PART] * len(sources)
    most_lines = max(LEAST_LINES, min(MOST_LINES, JOB_LINES // max(1, len(sources))))

    def taken(at: int) -> tuple[list[Block], Layout]:
        share = budget * extents[at].share
        blocks = _blocks(root, sources[at], extents[at], whole_limit, share, portions[at])
        samples = [blocks[0][1][:SAMPLE_BYTES], blocks[-1][1][-SAMPLE_BYTES:]]
        return blocks, learn_layout(sources[at], samples, year=year, most_lines=most_lines)

    expected = sum(
        each.bytes if each.weight <= whole_limit else min(each.bytes, budget * each.share) for each in extents
    )
    found = shared_out(taken, len(sources), sharing(expected, processes))
    layouts = completed([layout for _, layout in found])
    return [
        Choice(source, blocks, extent.weight <= whole_limit, layout)
        for source, extent, (blocks, _), layout in zip(sources, extents, found, layouts, strict=True)
    ]


def sharing(size: int, processes: int) -> int:
    """By how many of the processes so many bytes are worth being read closely."""
    return processes if size >= SHARED_BYTES else 1


def _whole_limit(extents: Sequence[Extent], together: int) -> int:
    """Up to which weight files are read whole, where these may weigh so much together."""
    small = sum(extent.weight for extent in extents if extent.weight <= WHOLE_BYTES)
    return WHOLE_BYTES if small <= together else together // max(1, len(extents))


def _shares(extents: Sequence[Extent], whole_limit: int) -> int:
    return sum(extent.share for extent in extents if extent.weight > whole_limit)


@dataclass(frozen=True, slots=True)
class _Portion:
    """One part in so many of a file's budget; of that, one in so many for its head and for its tail."""

    of_budget: int
    head: int
    tail: int


_LAST_PART = _Portion(1, 8, 2)  # or the only one
# Of a log that was rotated the job began in the first part and ended in the last.
_FIRST_PART, _MIDDLE_PART = _Portion(2, 4, 8), _Portion(4, 8, 8)


def _portions(sources: Sequence[Source]) -> list[_Portion]:
    """How much of each file is read where there are many, by its place among the parts of its log."""
    parts: dict[str, list[int]] = {}
    for source in sources:
        if source.family:
            parts.setdefault(source.family, []).append(source.part)

    def portion(source: Source) -> _Portion:
        among = parts.get(source.family, [source.part])
        if source.part == max(among):
            return _LAST_PART
        return _FIRST_PART if source.part == min(among) else _MIDDLE_PART

    return [portion(source) for source in sources]


def read_closely(root: Path, sources: Sequence[Source], extents: Sequence[Extent]) -> list[Reading]:
    """Each source, as much of it as is `chosen`."""
    return [each.read() for each in chosen(root, sources, extents)]


def read_windows(root: Path, source: Source, extent: Extent, size: int) -> Reading:
    """The head of a source and `size` bytes from each of its extent's places on. Raises StreamFault."""
    windows = [(0, min(size, extent.bytes), 1, 0)]
    windows += [(at, min(at + size, extent.bytes), line, at) for line, at in extent.places]
    blocks = _taken(root, source, _disjoint(windows), extent.kept)
    year = _year(root, [source], [extent])
    learned = learn_layout(source, [block for _, block in blocks], year=year, most_lines=LEAST_LINES)
    (layout,) = completed([learned])
    return Reading(source, _read(source, layout, blocks), False, layout)


def _read(source: Source, layout: Layout, blocks: Sequence[Block]) -> tuple[Line, ...]:
    reader = LineReader(source, layout)
    return tuple(
        line for (start, first), block in blocks if block for line in reader.read_block(block, first, start)
    )


# `2025-03-04`; where no line has that, `04 Mar 2025 10:00:00` or `Mar  4 10:00:00 2025`; else
# `03/04/25 10:00`, log4j's `25/03/04 10:00`, `2025/03/04 10:00`, `2025-Mar-04 10:00`, `I20250304 10:00`.
_YEARS = (
    regex(rb"\b20([0-4]\d)-[01]\d-[0-3]\d"),
    regex(
        rb"\b[A-S][a-z]{2} +(?:[0-3]?\d [0-2]\d:[0-5]\d:[0-6]\d (?:[A-Z]{3,4} )?)?20([0-4]\d)"
        rb"(?= [0-2]\d:|\r?$)",
        re.MULTILINE,
    ),
    regex(rb"\b(?:[01]?\d/[0-3]?\d/|[0-3]\d/[01]\d/20)(?:20)?([0-4]\d),? [0-2]?\d:[0-5]\d"),
    regex(rb"\b([2-4]\d)/[01]\d/[0-3]\d [0-2]\d:[0-5]\d"),
    regex(rb"\b20([0-4]\d)(?:/[01]\d/[0-3]\d|-[A-S][a-z]{2}-[0-3]\d)[ T][0-2]?\d:[0-5]\d"),
    regex(rb"^[IWEF]20([0-4]\d)[01]\d[0-3]\d [0-2]\d:[0-5]\d", re.MULTILINE),
)


def _year(root: Path, sources: Sequence[Source], extents: Sequence[Extent]) -> int | None:
    """The year that most dated lines of the job show: glog and syslog times have none of their own."""
    ends: list[bytes] = []
    for source, extent in list(zip(sources, extents, strict=True))[:200]:
        tail = max(0, extent.bytes - 4096)
        # Seeking far into a compressed file costs more than it tells.
        if extent.kept is not None or tail < 64 << 20:
            with contextlib.suppress(StreamFault):
                asked = [(0, min(4096, extent.bytes)), (tail, extent.bytes)]
                ends.append(b"\n".join(read_ranges(root, source, asked, extent.kept)))
    for form in _YEARS:
        if told := Counter(year for each in ends for year in form.findall(each)):
            return 2000 + int(told.most_common(1)[0][0])
    with contextlib.suppress(OSError):  # no line says it: the year in which the folder was written
        return datetime.fromtimestamp(root.stat().st_mtime, UTC).year
    return None


def _blocks(
    root: Path, source: Source, extent: Extent, whole_limit: int, budget: int, portion: _Portion
) -> list[Block]:
    """What is read of a file; nothing of one that is gone or closed since the pass went over it."""
    try:
        if extent.weight <= whole_limit:
            return [((0, 1), block) for block in read_ranges(root, source, [(0, extent.bytes)], extent.kept)]
        budget = max(1024, budget * extent.bytes // extent.weight) // portion.of_budget
        windows = _windows(extent, budget, portion)
        # Of a compressed file that is one endless line nothing was kept.
        return _taken(root, source, windows, extent.kept) or [((0, 1), b"")]
    except StreamFault:
        return [((0, 1), b"")]


def _taken(root: Path, source: Source, windows: Sequence[Window], kept: Clippings | None) -> list[Block]:
    found = []
    blocks = read_ranges(root, source, [(start, stop) for start, stop, _, _ in windows], kept)
    for (start, _, line, offset), block in zip(windows, blocks, strict=True):
        first = line - block[: offset - start].count(b"\n")
        if start > 0:
            cut = block.find(b"\n") + 1
            block = block[cut:] if cut else b""
            start, first = start + cut, first + 1
        found.append(((start, first), block))
    return found


def _windows(extent: Extent, budget: int, portion: _Portion) -> list[Window]:
    """Disjoint windows in file order, of about `budget` bytes in all."""
    spare = budget
    chosen: list[Window] = []

    def take(start: int, stop: int, line: int, offset: int) -> None:
        nonlocal spare
        start, stop = max(0, start), min(extent.bytes, stop)
        if extent.kept is not None and extent.bytes > AGAIN_BYTES:
            held = extent.kept.held(min(offset, stop - 1)) or (0, 0)
            start, stop = max(start, held[0]), min(stop, held[1])
        if spare > 0 and start < stop:
            chosen.append((start, stop, line, offset))
            spare -= stop - start

    take(0, min(HEAD_BYTES, budget // portion.head), 1, 0)
    tail = min(TAIL_BYTES, budget // portion.tail)
    take(extent.bytes - tail, extent.bytes, extent.lines + 1, extent.bytes)
    above, below = min(BEFORE_BYTES, budget // 2), min(AFTER_BYTES, budget // 6)
    for line, offset in extent.places:
        if not any(start + 1024 <= offset < stop - 1024 for start, stop, _, _ in chosen):
            take(offset - above, offset + below, line, offset)
    return _disjoint(chosen)


def _disjoint(windows: Iterable[Window]) -> list[Window]:
    """The windows in file order, those that overlap as one."""
    joined: list[Window] = []
    for start, stop, line, offset in sorted(windows):
        if joined and start <= joined[-1][1]:
            before = joined[-1]
            joined[-1] = (before[0], max(before[1], stop), before[2], before[3])
        else:
            joined.append((start, stop, line, offset))
    return joined
