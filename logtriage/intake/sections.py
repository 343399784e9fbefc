"""Ends of several files in one, as `tail *.log` prints them, below headings such as `==> rank_3.log <==`.

They are read as the files that they were, like the members of an archive; what is cited of them is named by
its line in the file that holds them all. `tail -f` goes on with a file under a further heading.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.text import decoded

MOST_BYTES = 64 << 20
MOST_SECTIONS = 20_000
_HEADING = re.compile(rb"^==> ([^\n]{1,400}) <==\r?$", re.MULTILINE)

Ranges = tuple[tuple[int, int], ...]  # bytes of a file: (start, stop)


def begins_with_section(head: bytes) -> bool:
    """Whether a file that begins so is made of sections."""
    return _HEADING.match(head.lstrip(b"\r\n")[:512]) is not None


def sections(data: bytes) -> dict[str, Ranges]:
    """By the name of each file, where its lines stand."""
    headings = list(itertools.islice(_HEADING.finditer(data), MOST_SECTIONS))
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ends = [heading.start() for heading in headings[1:]] + [len(data)]
    for heading, end in zip(headings, ends, strict=True):
        start = min(heading.end() + 1, end)
        if end < len(data) and data.endswith(b"\n\n", start, end):
            end -= 1  # the empty line before the next heading is none of the file's
        found[_name(heading[1])].append((start, end))
    return {name: tuple(ranges) for name, ranges in found.items()}


def _name(heading: bytes) -> str:
    """A path below the file that holds the sections, whatever the heading says."""
    parts = [part for part in decoded(heading).split("/") if part.strip(". ")]
    return "/".join(part.lstrip(".") for part in parts) or "unnamed"


@dataclass(frozen=True, slots=True)
class SectionLines:
    """The lines of a section, by their numbers in it, as the `file` holds them."""

    file: str
    data: bytes
    offsets: Sequence[int]  # of its lines
    numbers: Sequence[int]

    def place(self, line: int) -> tuple[int, int] | None:
        """The number, from 1, and the offset of the same line in the file."""
        return (self.numbers[line - 1], self.offsets[line - 1]) if 0 < line <= len(self.numbers) else None

    def text(self, line: int) -> str:
        """The line as the file holds it."""
        start = self.offsets[line - 1]
        end = self.data.find(b"\n", start)
        return decoded(self.data[start : end if end >= 0 else len(self.data)])


def section_lines(path: Path, file: str, ranges: Ranges) -> SectionLines:
    """The lines of a section of the file at `path`, which is called `file`. Raises OSError."""
    data = path.read_bytes()
    offsets: list[int] = []
    numbers: list[int] = []
    for start, stop in ranges:
        number = data.count(b"\n", 0, start) + 1
        at = start
        while at < stop:
            offsets.append(at)
            numbers.append(number)
            at = data.find(b"\n", at, stop) + 1 or stop
            number += 1
    return SectionLines(file, data, offsets, numbers)
