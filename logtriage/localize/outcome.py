"""How the job stood when its logs end: finished, in the middle of steps, or silent for too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.localize.progress import Progress, Trace, median
from logtriage.localize.scene import Scene
from logtriage.model import Line, SourceRole

# A pause is a hang when it is far longer than the job's usual time between steps and than a save or an
# evaluation takes. Unicron (OSDI'24 poster) calls 3 average iterations a hang; logs print every n-th only.
HANG_SECONDS = 45.0
HANG_INTERVALS = 12.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind`: completed | running | hang | unclear. `line` shows it; `silence` is in seconds."""

    kind: str
    line: Line | None
    silence: float = 0.0
    why: str = ""


def judge(scene: Scene, progress: Progress, *, before: float | None = None) -> Outcome:
    """The outcome by progress alone, whatever errors there are; only lines before `before` count."""
    finished = _finished(progress)
    if finished is not None:
        return Outcome("completed", finished, why="the program says that it is done")
    if not progress.traces:
        return Outcome("unclear", None, why="no step was ever reported")
    ends = [trace.last for trace in progress.traces]
    newest = max(ends, key=lambda point: (point.line.time or 0.0, point.step)).line
    last_seen = _last_time(scene, before)
    if newest.time is not None and last_seen is not None:
        silence = last_seen - newest.time
        usual = _usual_interval(progress.traces)
        if silence > max(HANG_SECONDS, HANG_INTERVALS * usual):
            return Outcome(
                "hang", newest, silence, f"no step for {silence:.0f} s where one took about {usual:.1f} s"
            )
    return Outcome("running", newest, why="the log ends among regular steps")


def _finished(progress: Progress) -> Line | None:
    for sign in reversed(progress.completed):
        if progress.steps_after(sign.line) < 2:
            return sign.line
    full = [trace for trace in progress.traces if trace.last.total and trace.last.step >= trace.last.total]
    # A bar that reached its end is one epoch or one download, unless nothing came after it.
    del full
    return None


def _last_time(scene: Scene, before: float | None) -> float | None:
    times = [
        line.time
        for reading in scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED, SourceRole.LAUNCHER)
        for line in reading.lines
        if line.time is not None and (before is None or line.time <= before)
    ]
    return max(times, default=None)


def _usual_interval(traces: Sequence[Trace]) -> float:
    gaps: list[float] = []
    for trace in traces:
        times = [point.line.time for point in trace.points if point.line.time is not None]
        gaps += [later - earlier for earlier, later in zip(times, times[1:], strict=False) if later > earlier]
    return median(gaps) if gaps else 0.0
