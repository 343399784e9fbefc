"""The end of a file as bytes and as lines: dumps are taken when a job hangs, so that is where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.layout import learn_layout
from logtriage.intake.lines import LineReader
from logtriage.intake.streams import StreamFault, stream
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


def read_tail(root: Path, source: Source) -> Tail:
    """At least the last TAIL_BYTES of a file, all of a file up to twice as long."""
    kept = b""
    offset, number = 0, 1
    try:
        for chunk in stream(root, source):
            kept += chunk
            if len(kept) > 2 * TAIL_BYTES:
                cut = kept.find(b"\n", len(kept) - TAIL_BYTES) + 1 or len(kept) - TAIL_BYTES
                number += kept.count(b"\n", 0, cut)
                offset += cut
                kept = kept[cut:]
    except StreamFault:
        pass  # said elsewhere; what was readable is here
    return Tail(kept, offset, number)


def from_first(tail: Tail, pattern: re.Pattern[bytes]) -> Tail:
    """The part of a tail that begins BEFORE_BYTES before the first match; the whole if there is none."""
    found = pattern.search(tail.data)
    cut = tail.data.rfind(b"\n", 0, max(0, found.start() - BEFORE_BYTES)) + 1 if found else 0
    return Tail(tail.data[cut:], tail.offset + cut, tail.number + tail.data.count(b"\n", 0, cut))


def lines_of(tail: Tail, source: Source) -> Iterable[Line]:
    layout = learn_layout(source, [tail.data[:SAMPLE_BYTES], tail.data[-SAMPLE_BYTES:]], year=None)
    return LineReader(source, layout).read_block(tail.data, tail.number, tail.offset)
