"""The end of a file as bytes and as lines: dumps are taken when a job hangs, so that is where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.layout import learn_layout
from logtriage.intake.lines import LineReader
from logtriage.intake.reading import Extent
from logtriage.intake.streams import StreamFault, newlines, read_ranges
from logtriage.model import Line, Source

TAIL_BYTES = 2 << 20
SAMPLE_BYTES = 64 << 10
BEFORE_BYTES = 8 << 10  # enough to learn how the lines are built and to see a heading


@dataclass(frozen=True, slots=True)
class Tail:
    """The last whole lines of a file, the offset of the first in bytes and its number."""

    data: bytes
    offset: int
    number: int

    @property
    def is_whole(self) -> bool:
        return self.offset == 0


def read_tail(root: Path, source: Source, extent: Extent) -> Tail:
    """The last TAIL_BYTES of a file in whole lines, all of a file up to twice as long."""
    start = 0 if extent.bytes <= 2 * TAIL_BYTES else extent.bytes - TAIL_BYTES
    try:
        (data,) = read_ranges(root, source, [(start, extent.bytes)], extent.kept)
    except StreamFault:
        return Tail(b"", 0, 1)  # said elsewhere
    number = extent.lines - newlines(data) + 1
    if start and (cut := data.find(b"\n") + 1):
        return Tail(data[cut:], start + cut, number + 1)
    return Tail(data, start, number)


def from_first(tail: Tail, pattern: re.Pattern[bytes]) -> Tail:
    """The part of a tail that begins BEFORE_BYTES before the first match; nothing if there is none."""
    found = pattern.search(tail.data)
    if found is None:
        return Tail(b"", tail.offset, tail.number)
    cut = tail.data.rfind(b"\n", 0, max(0, found.start() - BEFORE_BYTES)) + 1
    return Tail(tail.data[cut:], tail.offset + cut, tail.number + tail.data.count(b"\n", 0, cut))


def lines_of(tail: Tail, source: Source) -> Iterable[Line]:
    layout = learn_layout(source, [tail.data[:SAMPLE_BYTES], tail.data[-SAMPLE_BYTES:]], year=None)
    return LineReader(source, layout).read_block(tail.data, tail.number, tail.offset)
