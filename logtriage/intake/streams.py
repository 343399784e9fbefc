"""A source of the job as one stream of plain bytes, in pieces that end at line ends.

Offsets and line numbers are those of the stream after decompression. UTF-16 and UTF-32 text is turned
into UTF-8 first: its line numbers are those of the file, its offsets those of the UTF-8 text.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.ahead import ahead
from logtriage.intake.archives import Archive, Member, find_member, open_archive, shown_name
from logtriage.intake.compression import (
    CHUNK,
    StreamFault,
    compression_of,
    decompressed,
    narrowed,
    wide_encoding,
)
from logtriage.intake.cuts import Block, Told, cut, plain_blocks
from logtriage.intake.newest_first import oldest_first
from logtriage.intake.overlays import without_overlays
from logtriage.intake.sections import Ranges
from logtriage.model import Source

__all__ = [
    "Block",
    "Clippings",
    "Piece",
    "StreamFault",
    "Told",
    "blocks",
    "blocks_between",
    "is_seekable",
    "pieces",
    "read_ranges",
    "stored_chunks",
    "stream",
]

_NUMPY_PAYS = 256 << 10
_LINE = 64 << 10  # bytes in which a line end is looked for


@dataclass(frozen=True, slots=True)
class Piece:
    """A block and its place: `offset` and `first_line` (from 1) are those of its first byte."""

    data: bytes
    offset: int
    first_line: int
    elided: int = 0


@dataclass(frozen=True, slots=True)
class Clippings:
    """Stretches of a stream of `size` bytes that were kept while it was read, apart and in order."""

    size: int
    stretches: tuple[tuple[int, bytes], ...]  # (offset, bytes)

    def held(self, at: int) -> tuple[int, int] | None:
        """From where to where what was kept around the byte at an offset goes."""
        for start, data in self.stretches:
            if start <= at < start + len(data):
                return start, start + len(data)
        return None

    def ranges(self, asked: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """The bytes [start, end) for each range; None unless all of them were kept."""
        found = []
        for start, end in ((max(0, start), min(end, self.size)) for start, end in asked):
            held = [(at, data) for at, data in self.stretches if at <= start and end <= at + len(data)]
            if start >= end:
                found.append(b"")
            elif held:
                ((at, data),) = held
                found.append(data[start - at : end - at])
            else:
                return None
        return found


def stream(root: Path, source: Source, told: Told | None = None) -> Iterator[bytes]:
    """The plain bytes of a source in chunks of any size.

    Raises StreamFault after what was readable if the file is missing, cut or broken.
    """
    chunks = narrowed(decompressed(_counted(stored_chunks(root, source.file), told)))
    chunks = without_overlays(chunks, source.overlays) if source.overlays else chunks
    return oldest_first(chunks) if source.is_newest_first else chunks


def section_of(root: Path, file: str) -> tuple[Path, str, Ranges] | None:
    """Of a section that is read as a file: where the file lies that holds it, what that is called, its bytes.

    Raises StreamFault if there is no such file.
    """
    place = _place(root, file) if "/" in file else None
    if not isinstance(place, tuple) or place[0].sections is None:
        return None
    ranges = place[0].sections[place[1].name]
    return place[0].path, file.removesuffix(f"/{place[1].name}"), ranges


def blocks(
    root: Path, source: Source, size: int, told: Told | None = None, *, is_long: bool = False
) -> Iterator[Block]:
    """The stream of a source, cut behind b"\\n" into blocks of at most `size` bytes or one line.

    A thread decompresses ahead where it `is_long`, and a core would be idle otherwise.
    Raises StreamFault as `stream` does, after the last block of what was readable.
    """
    size = max(1, size)
    place = _place(root, source.file)
    rest: int | None = 0
    if isinstance(place, Path) and not source.is_remade:
        rest = yield from _plain_blocks(place, 0, None, size, told)
    if rest:
        yield from cut(_counted(_chunks(place, rest), told), size)
    elif rest is not None:
        made = stream(root, source, told)
        is_long = is_long and not is_seekable(root, source)
        yield from cut(ahead(made) if is_long else made, size)


def blocks_between(
    root: Path, source: Source, start: int, stop: int, size: int, told: Told | None = None
) -> Iterator[Block]:
    """As `blocks`, the lines alone that begin at a byte from `start` up to `stop`, of a seekable source."""
    size = max(1, size)
    place = _place(root, source.file)
    rest: int | None = start
    if isinstance(place, Path):
        rest = yield from _plain_blocks(place, start, stop, size, told)
    if rest is not None:
        stored = _chunks(place, max(0, rest - 1))
        yield from cut(_counted(_lines_between(stored, rest, stop), told), size)


def first_line(root: Path, source: Source, start: int) -> int:
    """The offset of the first line of a seekable source that begins at a byte from `start` on.

    That of its end where none does. Raises StreamFault as `stream` does.
    """
    at = start - 1  # a line begins behind a line end
    for chunk in _chunks(_place(root, source.file), at, _LINE) if start else ():
        end = chunk.find(b"\n")
        if end >= 0:
            return at + end + 1
        at += len(chunk)
    return max(0, at)


def _plain_blocks(
    path: Path, start: int, stop: int | None, size: int, told: Told | None
) -> Generator[Block, None, int | None]:
    try:
        return (yield from plain_blocks(path, start, stop, size, told))
    except OSError as error:
        raise _unopened(error) from error


def pieces(root: Path, source: Source, *, size: int = 16 << 20) -> Iterator[Piece]:
    """As `blocks`, each with its place.

    Raises StreamFault as `stream` does, after the last piece of what was readable.
    """
    offset, line = 0, 1
    for data, elided in blocks(root, source, size):
        yield Piece(data, offset, line, elided)
        offset += len(data) + elided
        line += newlines(data)


def is_seekable(root: Path, source: Source) -> bool:
    """Whether a source can be read from any of its bytes on: neither compressed nor of wide characters, and
    not remade.

    Raises StreamFault if it cannot be opened.
    """
    return not source.is_remade and _is_seekable(_place(root, source.file))


def _is_seekable(place: Path | tuple[Archive, Member]) -> bool:
    head = _first(_chunks(place, 0, 4096), 4096)
    plain = compression_of(head) is None and wide_encoding(head) is None
    return plain and not (isinstance(place, tuple) and place[1].offset < 0)


def _counted(chunks: Iterable[bytes], told: Told | None) -> Iterator[bytes]:
    for chunk in chunks:
        if told is not None:
            told(len(chunk))
        yield chunk


def _lines_between(chunks: Iterable[bytes], start: int, stop: int) -> Iterator[bytes]:
    """Of chunks that begin one byte before `start` (or at 0), the lines that begin in [start, stop)."""
    position = max(0, start - 1)
    inside = start == 0
    for chunk in chunks:
        if not inside:
            begin = chunk.find(b"\n") + 1
            if not begin:
                position += len(chunk)
                if position >= stop:
                    return
                continue
            position += begin
            chunk = chunk[begin:]
            inside = True
            if position >= stop:
                return
        # The line end that closes the last line stands at `stop` - 1 or behind it.
        end = chunk.find(b"\n", max(0, stop - 1 - position)) + 1
        if end:
            yield chunk[:end]
            return
        yield chunk
        position += len(chunk)


def read_ranges(
    root: Path, source: Source, ranges: Sequence[tuple[int, int]], kept: Clippings | None = None
) -> list[bytes]:
    """The bytes [start, end) of the stream for each range, in the order asked; short past the end.

    One pass over a compressed file, unless all of them were `kept`; seeks in a plain one. Raises StreamFault
    if the file cannot be opened.
    """
    if kept is not None and (found := kept.ranges(ranges)) is not None:
        return found
    order = sorted(range(len(ranges)), key=lambda which: ranges[which])
    parts: list[bytes] = [b""] * len(ranges)
    if not order:
        return parts
    place = _place(root, source.file)
    if not source.is_remade and _is_seekable(place):
        for which in order:
            start, end = ranges[which]
            size = max(0, end - max(0, start))
            parts[which] = _first(_chunks(place, max(0, start), size), size)
        return parts
    wanted: list[list[bytes]] = [[] for _ in ranges]
    last = max(end for _, end in ranges)
    first = position = 0
    try:
        for chunk in stream(root, source):
            behind = position + len(chunk)
            while first < len(order) and ranges[order[first]][1] <= position:
                first += 1
            for which in order[first:]:
                start, end = ranges[which]
                if start >= behind:
                    break
                wanted[which].append(chunk[max(0, start - position) : max(0, end - position)])
            position = behind
            if position >= last:
                break
    except StreamFault:
        pass  # said by `pieces` already; what was readable is here
    return [b"".join(found) for found in wanted]


def stored_chunks(root: Path, file: str) -> Iterator[bytes]:
    """The bytes of a source as they are stored: of a file, or of a member of an archive.

    Raises StreamFault if there is no such file or it cannot be read.
    """
    yield from _chunks(_place(root, file), 0)


def _place(root: Path, file: str) -> Path | tuple[Archive, Member]:
    """Where a source lies: a plain file, or a member of an archive."""
    place = Path(root)
    parts = file.split("/")
    if ".." in parts or not file or file.startswith("/"):
        raise StreamFault(f"{file} is no file of this folder")
    try:
        direct = place / file
        if direct.is_file():
            return direct
        for count, part in enumerate(parts, 1):
            place = _entry(place, part)
            if place.is_file():
                if count == len(parts):
                    return place
                archive = open_archive(place)
                if archive is None:
                    raise StreamFault(f"{'/'.join(parts[:count])} is no archive")
                return find_member(archive, "/".join(parts[count:]))
    except (OSError, ValueError) as error:
        raise _unopened(error) from error
    raise StreamFault(f"{file} is no file that can be read")


def _entry(folder: Path, shown: str) -> Path:
    """The entry of a folder by its printable name."""
    entry = folder / shown
    if entry.exists() or "\\x" not in shown:
        return entry
    return next((one for one in folder.iterdir() if shown_name(one.name) == shown), entry)


def _unopened(error: Exception) -> StreamFault:
    return StreamFault(f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _chunks(place: Path | tuple[Archive, Member], start: int, each: int = CHUNK) -> Iterator[bytes]:
    """The stored bytes from `start` on, of a file so many at a time."""
    if isinstance(place, tuple):
        archive, member = place
        yield from archive.chunks(member, start)
        return
    try:
        with place.open("rb", buffering=0) as file:
            if start:
                file.seek(start)
            while data := file.read(min(each, CHUNK)):
                yield data
    except OSError as error:
        raise _unopened(error) from error


def _first(chunks: Iterable[bytes], size: int) -> bytes:
    """The first `size` bytes; what could be read of them if the stream is broken."""
    data = bytearray()
    if size <= 0:
        return b""
    try:
        for chunk in chunks:
            data += chunk
            if len(data) >= size:
                break
    except StreamFault:
        if not data:
            raise
    return bytes(data[:size])


def newlines(data: bytes) -> int:
    """The number of b"\\n"; four times as fast as `bytes.count`, which looks for short lines one by one."""
    if len(data) < _NUMPY_PAYS:
        return data.count(b"\n")
    import numpy as np

    codes = np.frombuffer(data, np.uint8)
    return sum(
        int(np.count_nonzero(codes[start : start + _NUMPY_PAYS] == 10))
        for start in range(0, len(data), _NUMPY_PAYS)
    )
