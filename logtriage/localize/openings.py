"""Where the last run begins in a file that several runs wrote, one behind the other: `train.py >> train.log`.

A program begins each time with the same words. Where the kinds of a file's first lines come once more,
together, behind the end of a run and later than all that was written before, it was started anew.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Sequence

from logtriage.intake.reading import Reading
from logtriage.mining.kinds import key_of
from logtriage.mining.summary import Summary
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

HEAD_LINES = 30
MOST_RUNS = 64  # a kind that comes more often is none of a start
ANCHORED = 3  # kinds, the first of which that comes again tells how many runs there are
WORKING = 4  # times as many lines of a kind: the program is at work
LEAST_SHARE = 0.6  # of the kinds of the head that must come again
SHIFTED = 20  # lines by which they may come apart, where several processes write
END_LINES = 60  # before a start, within which the run before it has ended


def last_opening(
    reading: Reading, summary: Summary, ends: Iterable[int], steps: Container[int]
) -> int | None:
    """The number of the line with which the last of several runs begins; None where there is but one.

    `ends` are the lines that tell of an end or of what may have ended a run: one of them stands before each
    start; `steps` those that tell how far it is. Needs times: of parts that were put together from files of
    one run none begins behind all others. What several writers or machines begin alike begins no run.
    """
    if reading.source.role not in (SourceRole.MERGED, SourceRole.WORKER):
        return None
    ends = set(ends)
    head = list(
        itertools.takewhile(
            lambda line: not (line.number in steps or line.number in ends or line.message.startswith(_FAILS)),
            reading.lines[:HEAD_LINES],
        )
    )
    found = _again(head, summary)
    if found is None:
        return None
    starts, pairs, times_said = found
    if not any(starts - END_LINES <= number < starts for number in ends):
        return None
    by_number = {line.number: line for line in (*head, *reading.lines)}
    alike = [
        _named(by_number[first]) == _named(by_number[last])
        for first, last in pairs
        if first in by_number and last in by_number
    ]
    if len(alike) < len(pairs) or not all(alike):
        return None
    if any(_counts(by_number[first], by_number[last], times_said) for first, last in pairs):
        return None
    times = [(line.number < starts, line.time) for line in reading.lines if line.time is not None]
    ended = max((time for is_before, time in times if is_before), default=None)
    began = min((time for is_before, time in times if not is_before), default=None)
    return starts if ended is not None and began is not None and began >= ended else None


_FAILS = "Traceback (most recent call last)"
# Words that a short number ends or joins: of machines, ranks, files and steps.
_WORD = regex(r"[A-Za-z][A-Za-z_.-]*\d{1,3}(?![\d:])[\w-]*")


def _named(line: Line) -> tuple[int | None, str | None, list[str]]:
    """Who wrote a line, and what it names by a number."""
    return line.rank, line.host, _WORD.findall(line.message[:200])


_COUNT = regex(r"\b(?P<word>[A-Za-z]{2,20})[ _#:=]{1,2}(?P<number>\d{1,6})(?![\w.:/-])")
_OF_RUNS = regex(
    r"(?i)^(?:attempt|run|re-?start|try|re-?try|launch|incarnation|start|job|pid|process|port|seed)"
)


def _counts(first: Line, last: Line, times_said: int) -> bool:
    """Whether what begins a file is numbered, and goes on to be: `Trial 0 …`, and at the end `Trial 37 …`."""
    one, other = _COUNT.search(first.message[:200]), _COUNT.search(last.message[:200])
    if one is None or other is None or one["word"] != other["word"] or _OF_RUNS.match(one["word"]):
        return False
    return int(one["number"]) <= MOST_FIRST and int(other["number"]) + 1 >= max(times_said, MOST_FIRST + 2)


_LETTERS = regex(r"[^\W\d_]{2}")
MOST_FIRST = 2  # of what counts from 0 or 1 the first that is said


def _again(head: Sequence[Line], summary: Summary) -> tuple[int, list[tuple[int, int]], int] | None:
    """Where the kinds of a file's head come for the last time, if most of them do so together.

    With the numbers of the lines there and in the head, and how often the first of these kinds came.
    """
    # A ruler stands above and below each box.
    said_in_words = [line for line in head if _LETTERS.search(line.text)]
    kinds = [(line.number, summary.keys.get(key_of(line.text))) for line in said_in_words]
    known = [kind for number, kind in kinds if kind is not None and kind.first[0] == number]
    # What a start says several times it says as often again; a complaint is only repeated.
    said = Counter(kind.first[0] for _, kind in kinds if kind is not None)
    starts = (max(2, 2 * said[kind.first[0]]) <= kind.count <= MOST_RUNS for kind in known[:ANCHORED])
    at = next((at for at, is_start in enumerate(starts) if is_start), None)
    if at is None:
        return None
    anchor = known[at]
    of_start = list(itertools.takewhile(lambda kind: kind.count <= WORKING * anchor.count, known[at:]))
    shift = anchor.last[0] - anchor.first[0]
    apart = min(SHIFTED, shift // 2)
    together = [
        (kind.first[0], kind.last[0])
        for kind in of_start
        if kind.count > 1 and abs(kind.last[0] - kind.first[0] - shift) <= apart
    ]
    if len(together) < LEAST_SHARE * len(of_start):
        return None
    return min(last for _, last in together), together, anchor.count
