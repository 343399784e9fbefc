"""What somebody saw beside the logs while the job ran: `ps` of its processes, `squeue`, nvidia-smi.

A log that ends among regular steps tells of a healthy job, unless a look at it much later shows its processes
still alive, or its GPUs busy at the power of idle ones: they spin in a collective that never ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_ELAPSED = regex(r"(?:(?P<days>\d{1,3})-)?(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)")
# tqdm's `[0:32:56<3:30:03, 8.09s/it]`: the time since the first step.
_BAR = regex(r"\[(?P<elapsed>(?:\d{1,3}:)?\d{1,2}:\d\d)<")
LATER_SECONDS = 3600.0  # start-up before the first step can take long: so much, and as long as the steps took

_SMI_ROW = regex(
    r"(?P<watts>\d{1,4})W */ *(?P<most>\d{2,4})W *\| *(?P<mib>\d{1,7})MiB */ *\d{1,7}MiB *\| *"
    r"(?P<busy>\d{1,3})%"
)
BUSY = 90  # per cent
IDLE_POWER = 0.35  # of the power that the GPU may draw, or drew before: training draws more than half
LEAST_MIB = 1024  # used by a process that trains


@dataclass(frozen=True, slots=True)
class Sight:
    """A line that shows that the job stands still, and why it does."""

    line: Line
    why: str


def standing(scene: Scene, last: Line) -> Sight | None:
    """What shows that the job stood still after its last step, of lines that are no output of its own."""
    return _alive(scene, last) or _spinning(scene)


def _alive(scene: Scene, last: Line) -> Sight | None:
    """A process, or a job, that has run for far longer than its progress bar."""
    bar = _BAR.search(last.text[:600])
    if bar is None:
        return None
    stepped = _seconds(bar["elapsed"])
    for line, elapsed in _running(scene):
        if elapsed - stepped > max(LATER_SECONDS, stepped):
            return Sight(line, f"it runs for {elapsed:.0f} s, and its steps ended after {stepped:.0f} s")
    return None


def _running(scene: Scene) -> Iterator[tuple[Line, float]]:
    """Rows of `ps` (with ELAPSED) and `squeue` of what still runs, with its seconds since the start."""
    for reading in scene.readings:
        column, state = -1, -1
        for line in reading.lines:
            cells = line.text.split()
            head = "ELAPSED" in cells or ("JOBID" in cells and "TIME" in cells)
            if head:
                column = cells.index("ELAPSED" if "ELAPSED" in cells else "TIME")
                state = cells.index("ST") if "ST" in cells else -1
            elif 0 <= column < len(cells) and (state < 0 or cells[state] == "R"):
                yield line, _seconds(cells[column])


def _seconds(clock: str) -> float:
    found = _ELAPSED.fullmatch(clock)
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return 86_400.0 * days + 3_600.0 * hours + 60.0 * minutes + seconds


def _spinning(scene: Scene) -> Sight | None:
    """The first of a node's GPUs, all of which are busy at the power of idle ones."""
    for reading in scene.readings:
        for gpus in (_table(reading.lines), _monitored(reading.lines)):
            if len(gpus) > 1 and all(each.busy >= BUSY and each.share < IDLE_POWER for each in gpus):
                first = gpus[0]
                told = f"all GPUs are busy to {first.busy} % at {first.share:.0%} of their power: they wait"
                return Sight(first.line, told)
    return None


@dataclass(frozen=True, slots=True)
class _Gpu:
    line: Line
    busy: int
    share: float  # of the power that it may draw, or drew at most


def _table(lines: Sequence[Line]) -> list[_Gpu]:
    """The GPUs in use of nvidia-smi's table."""
    return [
        _Gpu(line, int(row["busy"]), int(row["watts"]) / int(row["most"]))
        for line in lines
        if "MiB" in line.text
        and (row := _SMI_ROW.search(line.text[:400])) is not None
        and int(row["mib"]) >= LEAST_MIB
    ]


def _monitored(lines: Sequence[Line]) -> list[_Gpu]:
    """The last sample of each GPU of `nvidia-smi dmon`, against the most power that it drew."""
    columns: list[str] = []
    most: dict[str, float] = {}
    newest: dict[str, tuple[Line, int, float]] = {}
    for line in lines:
        cells = line.text.split()
        if cells[:1] == ["#"] and {"gpu", "pwr", "sm"} <= set(cells):
            columns = cells[1:]
        elif columns and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            if row["pwr"].isdecimal() and row["sm"].isdecimal():
                watts = float(row["pwr"])
                most[row["gpu"]] = max(most.get(row["gpu"], 0.0), watts)
                newest[row["gpu"]] = (line, int(row["sm"]), watts)
    return [_Gpu(line, busy, watts / max(most[gpu], 1.0)) for gpu, (line, busy, watts) in newest.items()]
