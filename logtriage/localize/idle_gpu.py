"""The one GPU of a machine that is idle while all others spin: its process is not where its peers wait.

Whoever waits in a collective keeps its GPU busy, at the power of an idle one. The process whose GPU does
nothing never came there.
"""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

# A row of `nvidia-smi --query-gpu=index,utilization.gpu,… --format=csv`, with or without its heading.
_ROW = regex(r"^\s*(?:GPU )?(?P<index>\d{1,2})[,:] +(?P<rest>[^\n]{1,200})$")
_BUSY = regex(r"(?<![\d.])(?P<busy>\d{1,3}) ?%")
LEAST_GPUS = 3
SPINNING, IDLE = 90, 5  # per cent


def left_idle(scene: Scene) -> tuple[int, int, Line] | None:
    """The number of that GPU, how many there are, and the row that shows it."""
    for reading in scene.readings:
        rows = _rows(reading.lines)
        idle = [index for index, (busy, _) in rows.items() if busy <= IDLE]
        spinning = sum(busy >= SPINNING for busy, _ in rows.values())
        is_whole = len(rows) >= LEAST_GPUS and sorted(rows) == list(range(len(rows)))
        if is_whole and len(idle) == 1 and spinning == len(rows) - 1:
            return idle[0], len(rows), rows[idle[0]][1]
    return None


def _rows(lines: Sequence[Line]) -> dict[int, tuple[int, Line]]:
    """The last row of each GPU, by its number: how busy it is."""
    found: dict[int, tuple[int, Line]] = {}
    for line in lines:
        if "%" not in line.text[:220] or (row := _ROW.match(line.text[:220])) is None:
            continue
        busy = _BUSY.findall(row["rest"])
        if len(busy) == 1:
            found[int(row["index"])] = int(busy[0]), line
    return found
