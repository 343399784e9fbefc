"""How the work of the pass is shared out: parts of files, each read by one process.

A large plain file is read by several processes at once, each taking the lines that begin in its range of
bytes; a compressed one can only be read from its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.streams import Block, StreamFault, Told, blocks, blocks_between, is_seekable
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import Summary
from logtriage.model import Source

PART_BYTES = 64 << 20
BLOCK_BYTES = 8 << 20  # of a part, what is looked at in one go; several times as much memory is in use


@dataclass(frozen=True, slots=True)
class Part:
    """The lines of a source that begin at a byte from `start` up to `stop`, or all of them."""

    source: int  # its place among the sources
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was found in a part; `fault` says why its end could not be read, `is_whole` whether it was."""

    summary: Summary
    fault: str | None = None
    is_whole: bool = True


def parts_of(root: Path, sources: Sequence[Source]) -> list[list[Part]]:
    """The parts of each source, in order."""
    found = []
    for place, source in enumerate(sources):
        parts = [Part(place)]
        if source.size > 2 * PART_BYTES and _can_be_shared(root, source):
            starts = range(0, source.size, PART_BYTES)
            parts = [Part(place, start, start + PART_BYTES) for start in starts]
        found.append(parts)
    return found


def _can_be_shared(root: Path, source: Source) -> bool:
    try:
        return is_seekable(root, source)
    except StreamFault:
        return False  # said when it is read


def scan_part(
    scanner: Scanner,
    root: Path,
    source: Source,
    part: Part,
    told: Told,
    enough: Callable[[], bool],
) -> Scanned:
    """Read a part to its end, or until `enough` says so between two blocks; what was readable counts."""
    summary = Summary()
    try:
        for data, elided in _blocks(root, source, part, told):
            # A file that is no log can still hold what a rule with `where` looks for, so roles pass through.
            summary.append(scanner.scan_piece(data, source.role, elided=elided))
            if enough():
                return Scanned(summary, is_whole=False)
    except StreamFault as fault:
        return Scanned(summary, str(fault))
    except OSError as error:
        return Scanned(summary, error.strerror or str(error))
    return Scanned(summary)


def _blocks(root: Path, source: Source, part: Part, told: Told) -> Iterator[Block]:
    if part.stop is None:
        return blocks(root, source, BLOCK_BYTES, told)
    return blocks_between(root, source, part.start, part.stop, BLOCK_BYTES, told)
