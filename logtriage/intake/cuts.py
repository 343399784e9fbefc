"""Where a stream is cut into blocks: behind line ends, and within a line that is too long to be held."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from logtriage.intake.compression import CHUNK, StreamFault, compression_of, wide_encoding

# A line longer than this is given by its ends only.
LONGEST_LINE = 4 << 20
KEPT_END = 512 << 10
_WINDOW = 64 << 10  # bytes in which a line end is looked for at a block's end

# Whole lines (the last one of a stream may lack its end), and a count of bytes: where it is not 0, the block
# is one line longer than 4 MiB by its first and last 512 KiB, and so many bytes between them were left out.
Block = tuple[bytes, int]

# Called with the number of stored bytes whenever some were read.
Told = Callable[[int], None]


def plain_blocks(
    path: Path, start: int, stop: int | None, size: int, told: Told | None
) -> Generator[Block, None, int | None]:
    """The blocks `cut` makes of the lines of a file that begin in [start, stop), each read into its place.

    So no byte is copied, which is half of what reading costs. Ends where the file is not of that kind: where
    it is compressed or of wide characters, at a line that is long, at an end that moves. Returns the offset
    from which the rest has to be read otherwise, or None if there is no rest. Raises OSError.
    """
    if not hasattr(os, "pread"):  # Windows
        return start
    with path.open("rb", buffering=0) as file:
        number = file.fileno()
        head = os.pread(number, 4096, 0)
        if compression_of(head) is not None or wide_encoding(head) is not None:
            return start
        at = 0
        if start:
            before = os.pread(number, _WINDOW, start - 1)
            at = start + before.find(b"\n")
            if at < start:
                return start if len(before) == _WINDOW else None
        limit = None
        if stop is not None:
            # The line end that closes the last line stands at `stop` - 1 or behind it.
            behind = os.pread(number, _WINDOW, stop - 1)
            end = behind.find(b"\n")
            if end < 0 and len(behind) == _WINDOW:
                return start
            limit = stop + end if end >= 0 else None
        while limit is None or at < limit:
            most = size if limit is None else min(size, limit - at)
            window = min(most, _WINDOW)
            last = os.pread(number, window, at + most - window)
            is_last = len(last) < window
            wanted = most if is_last else most - window + last.rfind(b"\n") + 1
            data = os.pread(number, wanted, at)
            is_whole = len(data) < most if is_last else len(data) == wanted and b"\n" in last
            if not is_whole or not _has_short_lines(data):
                return at
            if told is not None:
                told(len(data))
            if data:
                yield data, 0
            if is_last:
                return None
            at += len(data)
    return None


def _has_short_lines(data: bytes) -> bool:
    """Whether no line of a block can be longer than LONGEST_LINE."""
    return all(data.find(b"\n", place, place + CHUNK) >= 0 for place in range(0, len(data) - CHUNK, CHUNK))


def cut(chunks: Iterator[bytes], size: int) -> Iterator[Block]:
    """A stream in blocks of at most `size` bytes or one line.

    Raises the StreamFault of the stream after the last block of what was readable.
    """
    held = bytearray()  # begins at the start of a line
    fault: StreamFault | None = None
    ended = False

    def next_chunk() -> bytes | None:
        nonlocal fault, ended
        try:
            return next(chunks)
        except StopIteration:
            ended = True
        except StreamFault as error:
            ended, fault = True, error
        return None

    def more() -> bool:
        if (chunk := next_chunk()) is not None:
            held.extend(chunk)
        return not ended

    while True:
        if len(held) < size:
            filling = [bytes(held)]
            filled = len(held)
            while filled < size and (chunk := next_chunk()) is not None:
                filling.append(chunk)
                filled += len(chunk)
            last = filling[-1]
            end = last.rfind(b"\n", 0, len(last) - max(0, filled - size)) + 1
            # The usual block ends in the chunk that fills it, and no line is long: each byte is copied once.
            if end and not ended and all(len(each) <= CHUNK and b"\n" in each for each in filling[1:]):
                yield b"".join((*filling[:-1], memoryview(last)[:end])), 0
                held = bytearray(memoryview(last)[end:])
                continue
            held = bytearray().join(filling)
        if not held:
            break
        end = len(held) if ended and len(held) <= size else held.rfind(b"\n", 0, size) + 1
        seen = 0
        while not end:  # the first line alone is larger than a piece
            end = held.find(b"\n", seen, LONGEST_LINE + 1) + 1
            if not end and len(held) > LONGEST_LINE:
                break
            seen = len(held)
            if not end and not more():
                end = len(held)
        if end > LONGEST_LINE:
            end = _before_long_line(held, end)
        if end:
            with memoryview(held) as view:
                data = bytes(view[:end])
            del held[:end]
            yield data, 0
            continue
        # A line longer than can be held: its first bytes, its last bytes, and the count of the others.
        head = bytes(held[:KEPT_END])
        del held[:KEPT_END]
        length = len(head)
        tail = b""
        while (found := held.find(b"\n")) < 0:
            length += len(held)
            tail = (tail + held)[-KEPT_END:]
            held.clear()
            if not more():
                break
        if found >= 0:
            length += found
            tail = (tail + held[:found])[-KEPT_END:]
            del held[: found + 1]
        data = head + tail + b"\n" * (found >= 0)
        yield data, length - len(head) - len(tail)
    if fault is not None:
        raise fault


def _before_long_line(data: bytearray, end: int) -> int:
    """Where the first line of data[:end] that is too long begins; `end` if there is none."""
    start = 0
    while end - start > LONGEST_LINE:
        newline = data.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if newline < 0:
            return start
        start = newline + 1
    return end
