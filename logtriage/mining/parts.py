"""How the work of the pass is shared out: parts of files, each read by one process.

A large plain file is read by several processes at once, each taking the lines that begin in its range of
bytes; a compressed one can only be read from its start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from logtriage.intake.streams import (
    Block,
    Clippings,
    StreamFault,
    Told,
    blocks,
    blocks_between,
    first_line,
    is_seekable,
)
from logtriage.mining.clippings import Clipper
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import Summary
from logtriage.model import Source

JOB_KEYS_BYTES = 12 << 20  # what the distinct shapes of all files together may take, but for each file …
LEAST_KEYS_BYTES = 256 << 10  # … at least this: some hundred kinds of lines
PART_BYTES = 64 << 20
CLIPPED_BYTES = 256 << 10  # a smaller compressed file is as soon decompressed again
BLOCK_BYTES = 8 << 20  # of a part, what is looked at in one go; several times as much memory is in use


# Parameters of glibc's `mallopt`, and what they are set to: blocks come and go, and otherwise each would be
# given back to the system and fetched again page by page, which took a sixth of the pass.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_REUSED_BYTES = 64 << 20


@cache
def reuse_memory() -> None:
    """Let this process keep the memory of blocks for the next ones; elsewhere than with glibc, nothing."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            library.mallopt(parameter, _REUSED_BYTES)


@dataclass(frozen=True, slots=True)
class Part:
    """The lines of a source that begin at a byte from `start` up to `stop`, or all of them."""

    source: int  # its place among the sources
    start: int = 0
    stop: int | None = None
    is_long: bool = False  # a process that reads it is still at work when all others are done

    @property
    def is_file(self) -> bool:
        return self.stop is None


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was found in a part; `fault` says why its end could not be read, `is_whole` whether it was.

    Of a file that is one part, the summary is finished, and of a compressed one `kept` spares close reading
    to decompress it again.
    """

    summary: Summary
    fault: str | None = None
    is_whole: bool = True
    kept: Clippings | None = None


def parts_of(root: Path, sources: Sequence[Source], processes: int = 1) -> list[list[Part]]:
    """The parts of each source, in order, for so many processes."""
    found = []
    total = sum(source.size for source in sources)
    for place, source in enumerate(sources):
        parts = [Part(place, is_long=processes > 1 and source.size * processes >= total)]
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


def keys_bytes(files: int) -> int:
    """What the shapes of each file may take, once it was read, beside those of all others."""
    return max(LEAST_KEYS_BYTES, JOB_KEYS_BYTES // max(1, files))


def scan_part(
    scanner: Scanner,
    root: Path,
    source: Source,
    part: Part,
    files: int,
    told: Told,
    enough: Callable[[], bool],
) -> Scanned:
    """Read a part to its end, or until `enough` says so between two blocks; what was readable counts.

    `files` are those of the job, which share the memory.
    """
    summary = Summary()
    one_rank = source.rank is not None
    fault = None
    is_whole = True
    clipper = None
    try:
        if part.is_file and source.size >= CLIPPED_BYTES and not is_seekable(root, source):
            clipper = Clipper(files, scanner.sure)
        begin = first_line(root, source, part.start)
        for data, elided in _blocks(root, source, part, told):
            # A file that is no log can still hold what a rule with `where` looks for, so roles pass through.
            offset = begin + summary.bytes
            found = scanner.scan_piece(data, source.role, offset=offset, elided=elided, one_rank=one_rank)
            if clipper is not None:
                clipper.add(data, elided, found)
            summary.append(found)
            if enough():
                is_whole = False
                break
    except StreamFault as error:
        fault = str(error)
    except OSError as error:
        fault = error.strerror or str(error)
    if part.is_file:
        summary = scanner.finished(summary, source.role, one_rank=one_rank, keys_bytes=keys_bytes(files))
    kept = None if clipper is None else clipper.clippings(scanner.places(summary))
    return Scanned(summary, fault, is_whole, kept)


def _blocks(root: Path, source: Source, part: Part, told: Told) -> Iterator[Block]:
    if part.stop is None:
        return blocks(root, source, BLOCK_BYTES, told, is_long=part.is_long)
    return blocks_between(root, source, part.start, part.stop, BLOCK_BYTES, told)
