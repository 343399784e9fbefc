"""What an assistant writes to standard input, mended where the SDK would not read it and never answer."""

from __future__ import annotations

import io
import re
from typing import BinaryIO

# An escape of JSON; the group is half of a pair of surrogates without the other half.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def mended(line: bytes) -> bytes:
    """A line of JSON in which each lone surrogate, `\\ud800`, is the replacement character instead.

    JSON's grammar allows them, and programs that take file names for text write them; the SDK's parser
    refuses the whole message, and a message that it cannot read has no id that an answer could name.
    """
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], line) if b"\\u" in line else line


class _MendedLines(io.RawIOBase):
    def __init__(self, wire: BinaryIO) -> None:
        self._wire = wire
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._rest = self._rest or mended(self._wire.readline())
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def mended_input(wire: BinaryIO) -> io.TextIOWrapper:
    """A text stream over `wire` for the SDK's transport; a line is there as soon as it was written."""
    return io.TextIOWrapper(io.BufferedReader(_MendedLines(wire)), encoding="utf-8", errors="replace")
