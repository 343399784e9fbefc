"""Disks that cannot keep up: `iostat -x` beside a job whose steps take far longer for stretches.

A busy disk alone is no fault, and neither is a slow stretch. Together, with processors that wait for it, they
tell that the steps wait for what is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.localize.progress import Trace
from logtriage.localize.scene import Scene
from logtriage.model import Line

UTILISED = 90.0  # per cent of the time
WAITING = 25.0  # per cent of the processors' time
SLOWED = 2.5  # times as long as the quickest tenth of the steps take …
SLOW_SHARE = 0.3  # … in so many of the intervals between steps
LEAST_INTERVALS = 8


@dataclass(frozen=True, slots=True)
class BusyDisk:
    """A row of `iostat` whose disk is busy with reading, and per cent of the time that processors wait."""

    row: Line
    waiting: float

    @property
    def told(self) -> str:
        name = self.row.text.split()[0]
        return f"disk {name} is never idle, and the processors wait for it {self.waiting:.0f} % of the time"


def busy_disk(scene: Scene) -> BusyDisk | None:
    """The busiest of the disks that were read from while the processors waited, if one was hardly idle."""
    found: list[tuple[float, BusyDisk]] = []
    for reading in scene.readings:
        names: list[str] = []
        waiting = 0.0
        for line in reading.lines if any("%util" in line.text[:400] for line in reading.lines) else ():
            cells = line.text[:400].split()
            if "%iowait" in cells or "%util" in cells:
                names = cells
            elif "%iowait" in names and len(cells) == len(names) - 1:  # nothing stands below `avg-cpu:`
                waiting = _number(cells[names.index("%iowait") - 1])
            elif "%util" in names and len(cells) == len(names) and waiting >= WAITING:
                row = dict(zip(names, cells, strict=True))
                is_read = _first(row, "rMB/s", "rkB/s", "rsec/s") > _first(row, "wMB/s", "wkB/s", "wsec/s")
                if is_read and (busy := _number(row["%util"])) >= UTILISED:
                    found.append((busy, BusyDisk(line, waiting)))
    return max(found, key=lambda each: each[0])[1] if found else None


def _first(row: dict[str, str], *names: str) -> float:
    return next((_number(row[name]) for name in names if name in row), 0.0)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return 0.0


def slow_stretches(traces: Sequence[Trace]) -> tuple[Line, ...]:
    """The steps that came far later than usual, the slowest first, where many did; of the longest trace."""
    longest = max(traces, key=lambda each: len(each.points), default=None)
    paces = [
        ((after.line.time - before.line.time) / (after.step - before.step), after.line)
        for before, after in pairwise(longest.points if longest else ())
        if after.step > before.step and after.line.time is not None and before.line.time is not None
    ]
    if len(paces) < LEAST_INTERVALS:
        return ()
    paces.sort(key=lambda each: -each[0])
    quick = paces[-1 - len(paces) // 10][0]
    slow = tuple(line for pace, line in paces if pace > SLOWED * quick > 0)
    return slow if len(slow) >= SLOW_SHARE * len(paces) else ()
