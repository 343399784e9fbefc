"""The lines of sources that are read in another form or order than their files have, as those hold them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from logtriage.intake.newest_first import oldest_first_order
from logtriage.intake.overlays import lifted
from logtriage.intake.sections import lines_of_ranges
from logtriage.intake.streams import StreamFault, section_of, stream
from logtriage.intake.text import decoded
from logtriage.model import Source


@dataclass(frozen=True, slots=True)
class StoredLines:
    """The lines of a file, by their numbers in the stream that was made of them.

    `file` is that file where it has another name than the source: where that is a section of it.
    """

    data: bytes
    offsets: Sequence[int]  # of the lines of the file
    order: Sequence[int]  # of each line of the stream the line of the file, from 0
    file: str | None = None

    def place(self, line: int) -> tuple[int, int] | None:
        """The number, from 1, and the offset of the same line as the file holds it."""
        if not 0 < line <= len(self.order):
            return None
        stored = self.order[line - 1]
        return stored + 1, self.offsets[stored]

    def text(self, line: int) -> str:
        """The line as the file holds it; of one that was broken, where it begins."""
        start = self.offsets[self.order[line - 1]]
        end = self.data.find(b"\n", start)
        return decoded(self.data[start : end if end >= 0 else len(self.data)])

    def line(self, stored: int) -> int:
        """The number in the stream of a line of the file, or of what it is a part of."""
        found = [at for at, each in enumerate(self.order, 1) if each < stored]
        return max(found, key=lambda at: self.order[at - 1], default=stored)


def stored_lines(root: Path, source: Source) -> StoredLines | None:
    """The lines of a source whose stream is not its file as that stands; of a broken one what can be read.

    Raises StreamFault if nothing can be read.
    """
    section = section_of(root, source.file) if source.is_section else None
    made = _remade(root, source) if source.is_remade else None
    if section is None:
        return made
    path, file, ranges = section
    try:
        status = path.stat()
        data, offsets = _whole(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise StreamFault(f"cannot be read: {error.strerror or error}") from error
    lines = lines_of_ranges(offsets, ranges)
    order = lines if made is None else [lines[at] for at in made.order if at < len(lines)]
    return StoredLines(data, offsets, order, file)


@lru_cache(maxsize=1)  # asked for each of its sections
def _whole(path: Path, changed: int, size: int) -> tuple[bytes, list[int]]:
    data = path.read_bytes()
    return data, _offsets(data)


def remade_files(root: Path, sources: Sequence[Source]) -> dict[str, StoredLines]:
    """`stored_lines` by file, of those sources that have some and can be read."""
    found = {}
    for source in sources:
        with contextlib.suppress(StreamFault):
            if (lines := stored_lines(root, source)) is not None:
                found[source.file] = lines
    return found


def _remade(root: Path, source: Source) -> StoredLines:
    data = bytearray()
    try:
        for chunk in stream(root, source.as_stored):
            data += chunk
    except StreamFault:
        if not data:
            raise
    held = bytes(data)
    offsets = _offsets(held)
    plain, order = lifted(held, source.overlays) if source.overlays else (held, range(len(offsets)))
    if source.is_newest_first:
        order = [order[place] for place in oldest_first_order(plain)]
    return StoredLines(held, offsets, order)


def _offsets(data: bytes) -> list[int]:
    return [0, *itertools.accumulate(len(line) + 1 for line in data.split(b"\n"))]
