"""Logs whose newest lines stand on top, as consoles of clusters and clouds export them.

Everything else reads them from the oldest line on (see `streams.stream`); what is told to people names lines
as they stand in the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from logtriage.intake.held_whole import changed_whole
from logtriage.intake.labels import Columns
from logtriage.intake.prefixes import read_head
from logtriage.intake.text import decoded, without_escapes
from logtriage.intake.times import time_at
from logtriage.regex import regex

MOST_BYTES, MOST_LINES = 64 << 20, 500_000  # of a file that is turned round; it is held whole meanwhile
LEAST_BACK = 5  # steps back in time, among the first lines that are dated …
MOST_ONWARD = 0.1  # … and of all steps so many, at most, may lead onward: writers' clocks and buffers differ
_LINES = 400
_FEW, _ABOVE_BYTES = 32, 8_192
_DATED = regex(rb"[^\n]{0,120}?(?<![\d:])(\d{1,2}:\d\d:\d\d|1[6-9]\d{8}(?:\d{3}){0,3}(?!\d))")
# The time of a record in JSON, on one line or printed over many; the name of the first is that of all.
_TIMED = regex(rb'"(@?timestamp|time|ts|asctime|@t|datetime|date)"\s*:\s*"?([^",}\]\s][^",}\]]{7,60})')
_OPENING = regex(rb"\s{0,64}\[?\s{0,64}\{")
_ISO = regex(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_TRACEBACK = b"Traceback (most recent call last)"
_FRAME = b'  File "'


def stands_newest_first(head: bytes, tail: bytes = b"") -> bool | None:
    """Whether the first lines of a file, and the last, are dated ever earlier.

    None where all that are dated are so, but too few to tell: then other files of the same export do.
    """
    # Of nearly all files their first lines tell at once that they do not.
    above = head[:_ABOVE_BYTES].split(b"\n", _FEW)[:_FEW]
    few = [found[1] for line in above if (found := _DATED.match(line)) is not None]
    few = _told_in_json(head) or few
    if sum(then < now for now, then in pairwise(few)) <= sum(then > now for now, then in pairwise(few)):
        return False
    times, last = _times(head), _times(tail)
    if not times:
        return False
    steps = [then - now for now, then in pairwise(times) if then != now]
    onward = sum(step > 0 for step in steps)
    if onward > MOST_ONWARD * len(steps) or (last and max(last) > max(times)):
        return False
    return True if len(steps) - onward >= LEAST_BACK else None


def _times(data: bytes) -> list[int]:
    """The times of lines, in whole seconds, of those that have one at their head."""
    if told := _told_in_json(data):
        stamps = (time_at(each.decode("utf-8", "replace"), 0) for each in told)
        return [int(stamp.seconds) for stamp in stamps if stamp is not None]
    found = []
    for raw in data.split(b"\n", _LINES)[:_LINES]:
        if _DATED.match(raw) is None:
            continue
        text = without_escapes(decoded(raw[:2_000]))
        head = read_head(text, Columns())
        stamp = head.stamp
        if stamp is None and (iso := _ISO.search(text[:200])) is not None:
            stamp = time_at(text, iso.start())
        if stamp is not None:
            found.append(int(stamp.seconds))
    return found


def _told_in_json(data: bytes) -> list[bytes]:
    """The times of records, as they are written; nothing where the data do not begin with a record."""
    if _OPENING.match(data) is None:
        return []
    told = list(itertools.islice(_TIMED.finditer(data), 2 * _LINES))
    return [each[2] for each in told if each[1] == told[0][1]]


def oldest_first(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A stream of lines turned round; one of more than MOST_BYTES or MOST_LINES as it is.

    Raises the StreamFault of the stream behind what was readable.
    """

    def turned(data: bytes) -> bytes:
        lines = _lines(data)
        return b"\n".join(lines[place] for place in oldest_first_order(data)) + b"\n" * data.endswith(b"\n")

    return changed_whole(chunks, turned, MOST_BYTES)


def oldest_first_order(data: bytes) -> list[int]:
    """The indices, from 0, of the lines of a file in the order in which they are read.

    Undated lines belong to the dated one above them, as the rows of a record do, unless tracebacks stand
    upside down: then each line was exported by itself. What stands above all dated lines, such as names
    of columns, stays there; so do the brackets of a list of records that are printed over many lines.
    """
    count = data.count(b"\n") + (not data.endswith(b"\n"))
    if len(data) > MOST_BYTES or count > MOST_LINES:
        return list(range(count))
    lines = _lines(data)
    last = len(lines)
    if _OPENING.match(data) is None:
        starts = [_DATED.match(line) is not None for line in lines]
    elif opened := next((line for line in lines[:2] if line.strip() == b"{"), b""):
        starts = [line == opened for line in lines]
        last -= lines[-1] == b"]"
    else:
        starts = [line.startswith(b"{") for line in lines]
    first = starts.index(True) if True in starts else 0
    if _is_upside_down(lines):
        return [*range(first), *range(len(lines) - 1, first - 1, -1)]
    begins = [place for place in range(first, last) if starts[place] or place == first]
    ends = [*begins[1:], last]
    entries = [range(begin, end) for begin, end in zip(begins, ends, strict=True)]
    turned = (place for entry in reversed(entries) for place in entry)
    return [*range(first), *turned, *range(last, len(lines))]


def _lines(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n")


def _is_upside_down(lines: Sequence[bytes]) -> bool:
    """Whether the frames of tracebacks stand above their headings."""
    above = below = 0
    for place, line in enumerate(lines):
        if _TRACEBACK in line:
            above += place > 0 and _FRAME in lines[place - 1]
            above += place > 1 and _FRAME in lines[place - 2]
            below += place + 1 < len(lines) and _FRAME in lines[place + 1]
    return above > below
