"""The frames of a zstd stream, one at a time: sizes that stand in it tell where each ends (RFC 8878, 3.1).

So the library can be given a frame to read from, and asked for so many plain bytes at a time: fast, and a
bomb stays bounded, of which four bytes may hold 128 KiB. What stands behind a frame is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_MAGIC = b"\x28\xb5\x2f\xfd"
_CHECKSUM_BYTES = 4
_RAW, _RLE, _COMPRESSED, _RESERVED = range(4)


class Frame:
    """A file of the bytes of one frame, or of one that is to be skipped.

    `take` gives the next bytes of the stream, at most so many and b"" at its end.
    """

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self._take = take
        self._bytes = self._walked()
        self._is_cut = False

    def read(self, size: int) -> bytes:
        """The next bytes, b"" at the end; they may be fewer, or a whole header more."""
        return next(self._bytes, b"")

    def is_at_end(self) -> bool:
        """Go to the end of the frame; whether it was there."""
        while self.read(0):
            pass
        return not self._is_cut

    def _walked(self) -> Iterator[bytes]:
        magic = self._exactly(4)
        if magic != _MAGIC:  # one that is to be skipped
            length = self._exactly(4)
            yield magic + length
            yield from self._span(int.from_bytes(length, "little"))
        else:
            descriptor = self._exactly(1)
            flags = descriptor[0] if descriptor else 0
            yield magic + descriptor + self._exactly(_rest_of_header(flags))
            is_last = False
            while not is_last:
                header = self._exactly(3)
                number = int.from_bytes(header, "little")
                is_last, kind, size = bool(number & 1), number >> 1 & 3, number >> 3
                yield header
                if len(header) < 3 or kind == _RESERVED:
                    return  # cut off, or broken as the library will say
                yield from self._span(1 if kind == _RLE else size)
            if flags & 4:
                yield self._exactly(_CHECKSUM_BYTES)

    def _span(self, size: int) -> Iterator[bytes]:
        while size > 0 and (data := self._take(size)):
            size -= len(data)
            yield data
        self._is_cut = self._is_cut or size > 0

    def _exactly(self, size: int) -> bytes:
        return b"".join(self._span(size))


def _rest_of_header(flags: int) -> int:
    """The bytes of a frame's header behind its descriptor: window, dictionary, size of the content."""
    is_single_segment = flags >> 5 & 1
    content = (is_single_segment, 2, 4, 8)[flags >> 6]
    return (not is_single_segment) + (0, 1, 2, 4)[flags & 3] + content
