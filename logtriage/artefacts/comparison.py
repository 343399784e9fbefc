"""What the dumps of a job's ranks show together, in records and in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from logtriage.model import Frame


class Fault(StrEnum):
    """What the recordings show of a rank, the most telling first."""

    MISMATCH = "mismatch"  # another operation, size or type than its peers under the same number
    ALONE = "alone"  # it issued what most of its group never did
    CROSSED = "crossed"  # groups wait for each other: it issued operations in another order
    ABSENT = "absent"  # it never joined what its peers wait in, and waits for nobody
    STALLED = "stalled"  # it still waits in what its peers completed
    NOT_STARTED = "not started"  # its GPU has not begun what runs on its peers
    NO_DUMP = "no dump"  # its peers wait, and its recorder wrote nothing
    JOINED = "joined"  # all joined alike and none completed: nobody's fault by the recordings


PROGRAM_FAULTS = (Fault.MISMATCH, Fault.ALONE, Fault.CROSSED)


class Stand(StrEnum):
    OUTSIDE = "outside"  # in no collective while the others wait in one
    OTHER_COLLECTIVE = "other collective"  # the program took another path
    ELSEWHERE = "elsewhere"  # at another place than the others, none of them in a collective


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that the recordings show of a rank, in words, and its dump. Time in seconds since 1970."""

    text: str
    file: str
    rank: int | None
    time: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of one dump, by its record id, and why it tells."""

    file: str
    rank: int
    record: int
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the recordings of all ranks show together.

    `ranks` are to blame, empty where the recordings do not decide. `waiting` are the ranks that had issued
    what did not complete. `there` is the place in the program from which the others issued what they wait
    in, `here` where the ranks to blame issued what they were in or did last. `entries` are the most telling
    entries of the dumps.
    """

    fault: Fault
    ranks: tuple[int, ...]
    told: str
    points: tuple[Point, ...]
    recorded: tuple[int, ...]
    waiting: tuple[int, ...]
    unrecorded: tuple[int, ...]
    older: tuple[int, ...]
    there: Frame | None = None
    here: Frame | None = None
    operation: str = ""
    since: float | None = None
    entries: tuple[Entry, ...] = ()


def told_ranks(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-6, 8`"""
    ordered = sorted(set(ranks))
    runs: list[list[int]] = []
    for rank in ordered:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    told = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs]
    more = f" and {len(told) - 12} more" if len(told) > 12 else ""
    return f"rank{'s' if len(ordered) > 1 else ''} {', '.join(told[:12])}{more}"
