"""Compressed and wide-character bytes → plain bytes, as a stream with bounded memory.

The kind of compression is read off the first bytes, never off the name. What a broken stream gave before
the break is given first; only then a :class:`StreamFault` says what is missing.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, cast

from logtriage.intake.zstd_frames import Frame

CHUNK = 2 << 20  # twice as much is the longest line that is held
# A stream that grows more than this many times over is a bomb, once it is larger than the floor.
MOST_GROWTH = 500
GROWTH_FLOOR = 1 << 30
_ZSTD_BYTES = 256 << 10  # what a call gives is lost where the stream breaks in it
_PEEKED = 64  # bytes behind a stream in which another may begin
_XZ_MEMORY = 256 << 20
# Bytes after the end of a compressed stream: tape padding and the like are short and mean nothing.
_HARMLESS_GARBAGE = 64 << 10

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
)
_FOREIGN = (
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x02\x21\x4c\x18", "lz4"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"\x1f\x9d", "compress (.Z)"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
    (b"LZIP", "lzip"),
)


class StreamFault(Exception):
    """A stream could not be read to its end; the message is for a person. What was readable came before."""


def compression_of(head: bytes) -> str | None:
    """gzip | zstd | xz | bzip2, or None; `head` is the first bytes of the file (10 are enough)."""
    if head.startswith(b"BZh") and not (head[3:4].isdigit() and head[4:10] in _BZIP2_BLOCKS):
        return None  # a log may well begin with the letters BZh
    if len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18":
        return "zstd"  # a skippable frame comes first (pzstd, seekable zstd)
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")


def foreign_compression(head: bytes) -> str | None:
    """The name of a compression that is known but cannot be read here."""
    return next((kind for magic, kind in _FOREIGN if head.startswith(magic)), None)


def decompressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The plain bytes of a stream: decompressed where it is compressed, as they are otherwise.

    Raises StreamFault at the end of what could be read if the stream is cut, broken, or a bomb.
    """
    head, chunks = _peek(chunks, 10)
    kind = compression_of(head)
    if kind is None:
        yield from chunks
        return
    expand: Callable[[_Feed], Iterator[bytes]] = {
        "gzip": _gunzip,
        "zstd": _unzstd,
        "xz": _unxz,
        "bzip2": _bunzip2,
    }[kind]
    feed = _Feed(chunks)
    given = 0
    for plain in expand(feed):
        yield plain
        given += len(plain)
        if given > max(GROWTH_FLOOR, MOST_GROWTH * feed.taken):
            raise StreamFault(
                f"the {kind} stream grows more than {MOST_GROWTH} times over; "
                f"only its first {given:,} bytes were read"
            )


class _Feed:
    """The compressed bytes still to come, with what a decompressor gave back in front."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""
        self._at = 0  # what of it was taken: cutting off the rest each time would copy it
        self.taken = 0

    def take(self, most: int = CHUNK) -> bytes:
        """The next bytes (at most `most`), b"" at the end."""
        if self._at >= len(self._held):
            self._held, self._at = next((chunk for chunk in self._chunks if chunk), b""), 0
            self.taken += len(self._held)
        data = self._held[self._at : self._at + most]
        self._at += len(data)
        return data

    def give_back(self, data: bytes) -> None:
        before = self._at - len(data)
        if before >= 0 and self._held[before : self._at] == data:
            self._at = before
        else:
            self._held, self._at = data + self._held[self._at :], 0

    def next_stream(self, kind: str, given: int) -> bool:
        """Skip padding after one compressed stream; True if another of the same kind follows.

        Raises StreamFault if much follows that is no such stream.
        """
        data = b""
        while not data:
            data = self.take(_PEEKED)
            if not data:
                return False
            data = data.lstrip(b"\0")
        while len(data) < 10 and (more := self.take(_PEEKED)):
            data += more
        if compression_of(data[:10]) == kind:
            self.give_back(data)
            return True
        garbage = len(data)
        while garbage < _HARMLESS_GARBAGE and (more := self.take()):
            garbage += len(more)
        if garbage >= _HARMLESS_GARBAGE:
            raise StreamFault(f"what follows the first {given:,} bytes of the {kind} stream is not {kind}")
        return False


def _cut(kind: str, given: int) -> StreamFault:
    return StreamFault(f"the {kind} stream is cut off; its first {given:,} bytes were read")


def _broken(kind: str, given: int, error: Exception) -> StreamFault:
    return StreamFault(f"the {kind} stream is broken after {given:,} bytes ({error})")


def _gunzip(feed: _Feed) -> Iterator[bytes]:
    from isal import isal_zlib

    given = 0
    while True:
        stream = isal_zlib.decompressobj(31)
        data = b""
        while not stream.eof:
            if not data:
                data = feed.take()
                if not data:
                    raise _cut("gzip", given)
            try:
                plain = stream.decompress(data, CHUNK)
                # A full answer may leave more inside, even when all input is taken.
                data = stream.unconsumed_tail
                while len(plain) == CHUNK and not data and not stream.eof:
                    given += len(plain)
                    yield plain
                    plain = stream.decompress(b"", CHUNK)
                    data = stream.unconsumed_tail
            except Exception as error:  # isal's errors have no public common class
                raise _broken("gzip", given, error) from error
            if plain:
                given += len(plain)
                yield plain
        feed.give_back(stream.unused_data)
        if not feed.next_stream("gzip", given):
            return


def _unzstd(feed: _Feed) -> Iterator[bytes]:
    import zstandard

    given = 0
    while True:
        frame = Frame(feed.take)
        # A frame that wants a window above the library's 128 MiB is refused by it: bounded memory.
        stream = zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", frame))
        while True:
            try:
                plain = stream.read(_ZSTD_BYTES)
            except zstandard.ZstdError as error:
                raise _broken("zstd", given, error) from error
            if not plain:
                break
            given += len(plain)
            yield plain
        if not frame.is_at_end():
            raise _cut("zstd", given)
        if not feed.next_stream("zstd", given):
            return


def _unxz(feed: _Feed) -> Iterator[bytes]:
    import lzma

    given = 0
    while True:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        while not stream.eof:
            data = feed.take() if stream.needs_input else b""
            if not data and stream.needs_input:
                raise _cut("xz", given)
            try:
                plain = stream.decompress(data, CHUNK)
            except lzma.LZMAError as error:
                raise _broken("xz", given, error) from error
            if plain:
                given += len(plain)
                yield plain
        feed.give_back(stream.unused_data)
        if not feed.next_stream("xz", given):
            return


def _bunzip2(feed: _Feed) -> Iterator[bytes]:
    import bz2

    given = 0
    while True:
        stream = bz2.BZ2Decompressor()
        while not stream.eof:
            data = feed.take() if stream.needs_input else b""
            if not data and stream.needs_input:
                raise _cut("bzip2", given)
            try:
                plain = stream.decompress(data, CHUNK)
            except (OSError, ValueError) as error:
                raise _broken("bzip2", given, error) from error
            if plain:
                given += len(plain)
                yield plain
        feed.give_back(stream.unused_data)
        if not feed.next_stream("bzip2", given):
            return


def wide_encoding(head: bytes) -> str | None:
    """The codec of UTF-16 or UTF-32 text, by its byte order mark or its pattern of NULs, or None."""
    if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    # Without a mark: mostly Latin text has a NUL in every other byte. Runs of NULs (holes) have them in both.
    sample = head[: min(len(head), 4096) & ~1]
    if len(sample) < 16:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    pairs = len(sample) // 2
    if odd > 0.7 * pairs and even < 0.02 * pairs:
        return "utf-16-le"
    if even > 0.7 * pairs and odd < 0.02 * pairs:
        return "utf-16-be"
    return None


_CONTROLS = bytes(code for code in (*range(1, 8), *range(14, 27), *range(28, 32), 127))
_BINARY_MAGIC = (
    b"\x7fELF",
    b"PK\x03\x04",
    b"\x80\x02",
    b"\x80\x03",
    b"\x80\x04",
    b"\x80\x05",
    b"\x89PNG",
    b"\x89HDF",
    b"\xff\xd8\xff",
    b"GIF8",
    b"%PDF",
    b"\x93NUMPY",
    b"PAR1",
    b"GGUF",
    b"SQLite format 3\0",
)


def is_text(sample: bytes) -> bool:
    """Whether bytes look like lines of text in any 8-bit encoding, holes of NULs allowed."""
    if not sample:
        return True
    if sample.startswith(_BINARY_MAGIC):
        return False
    nuls = sample.count(0)
    if nuls:
        text = re.sub(rb"\0{16,}", b"", sample)  # a hole in the file, left by a crash or a network drive
        if not text:
            return False
        if text.count(0) * 10 > len(text):
            return False
        sample = text.replace(b"\0", b"")
    strange = len(sample) - len(sample.translate(None, _CONTROLS))
    if strange == 0:
        return True
    try:
        sample.decode("utf-8")
        valid = nuls == 0
    except UnicodeDecodeError as error:
        valid = nuls == 0 and error.start >= len(sample) - 3
    return strange * (10 if valid else 50) <= len(sample)


def narrowed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 and UTF-32 text as UTF-8 bytes; everything else as it is.

    Lines keep their numbers. The byte order mark is dropped, halves of surrogate pairs become U+FFFD.
    """
    head, chunks = _peek(chunks, 4096)
    codec = wide_encoding(head)
    if codec is None:
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(codec)(errors="replace")
    for chunk in chunks:
        if text := decoder.decode(chunk):
            yield text.encode("utf-8", "replace")
    if text := decoder.decode(b"", True):
        yield text.encode("utf-8", "replace")


def _peek(chunks: Iterable[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first `size` bytes (fewer if there are no more), and the whole stream."""
    rest = iter(chunks)
    first: list[bytes] = []
    have = 0
    while have < size:
        try:
            chunk = next(rest)
        except StopIteration:
            break
        except StreamFault as fault:
            rest = _failing(fault)
            break
        first.append(chunk)
        have += len(chunk)
    return b"".join(first)[:size], chain(first, rest)


def _failing(fault: StreamFault) -> Iterator[bytes]:
    raise fault
    yield b""
