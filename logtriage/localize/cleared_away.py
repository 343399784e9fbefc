"""A job that had stood still, without a word, long before its time limit or a person ended it.

The limit then only cleared away what hung. Between its last words and the end lie hours in which by its own
pace hundreds of steps were due, and more than any save or evaluation of it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from logtriage.localize.cascade import Group
from logtriage.localize.courses import broke_off_alone
from logtriage.localize.outcome import HANG_INTERVALS, LONGEST_PAUSES, Outcome
from logtriage.localize.progress import Progress, StepPoint, usual_interval
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line

_ENDS = ("scheduler.time_limit", "scheduler.cancelled")
IDLE_SECONDS = 1800.0
UNSEEN_SECONDS = 7200.0  # where the last words are none of a step: a phase that was never seen may have begun
NOTICE_SECONDS = 120.0  # before its end who is told of it may say so
LEAST_STEPS = 5
LEAST_UNDATED = 4  # lines behind the last step that bear no time may have been written at any later one
ZONE, ZONE_REST, LONGEST_ZONE = 1800.0, 45.0, 14 * 3600.0  # by which the scheduler's clock may be another


def cleared_away(
    scene: Scene, progress: Progress, topology: Topology, outcome: Outcome, root: Group | None
) -> Outcome | None:
    """The hang that a limit, or who cancelled the job, only ended; None where the job worked until then."""
    if root is None or root.failure_type not in _ENDS:
        return None
    if outcome.kind == "hang":
        return outcome if outcome.seen is not None or outcome.silence >= IDLE_SECONDS else None
    dated = [(each.time, each.line) for each in root.causes if each.time is not None]
    step, usual = progress.last_step, usual_interval(progress.traces)
    if dated and step is None:
        return _one_broke_off(scene, topology, *max(dated, key=lambda each: each[0]))
    if not dated or step is None or step.line.time is None or not usual:
        return None
    ended, told = max(dated, key=lambda each: each[0])
    if max(len(trace.points) for trace in progress.traces) < LEAST_STEPS:
        return None
    wrote = max(_written(scene, ended - NOTICE_SECONDS), default=0.0)
    silence = ended - max(wrote, step.line.time)
    least = IDLE_SECONDS if wrote <= step.line.time else UNSEEN_SECONDS
    longest = max((pause for trace in progress.traces for pause in _pauses(trace.points)), default=0.0)
    if silence < max(least, HANG_INTERVALS * usual, LONGEST_PAUSES * longest):
        return None
    if _may_be_zone(silence, usual) or _undated(scene, step.line, told) >= LEAST_UNDATED:
        return None
    why = f"no step for {silence:.0f} s before it was ended, where one took about {usual:.1f} s"
    return Outcome("hang", step.line, silence, why, seen=told)


def _one_broke_off(scene: Scene, topology: Topology, ended: float, told: Line) -> Outcome | None:
    """Of a job without steps: a rank that wrote but the beginning of what its peers did, hours before that.

    The peers have long done their part, and wait.
    """
    early = tuple(broke_off_alone(scene, topology, frozenset()).values())
    times = list(_written(scene, ended - NOTICE_SECONDS)) if early else []
    if not times:
        return None
    silence = ended - max(times)
    if silence < max(UNSEEN_SECONDS, LONGEST_PAUSES * (max(times) - min(times))) or _may_be_zone(
        silence, 0.0
    ):
        return None
    why = f"its peers did all of theirs, and nobody wrote for {silence:.0f} s before the job was ended"
    return Outcome("hang", early[0], silence, why, seen=told, late=early)


def _written(scene: Scene, until: float) -> Iterator[float]:
    """When the job's own lines were written, without those of its end."""
    for reading in scene.readings:
        if reading.source.role in JOB_ROLES:
            yield from (line.time for line in reading.lines if line.time is not None and line.time <= until)


def _pauses(points: Sequence[StepPoint]) -> Iterator[float]:
    times = [point.line.time for point in points if point.line.time is not None]
    return (later - earlier for earlier, later in pairwise(times))


def _may_be_zone(silence: float, usual: float) -> bool:
    rest = silence % ZONE
    return silence < LONGEST_ZONE and (rest <= 1.5 * usual + ZONE_REST or rest >= ZONE - ZONE_REST)


def _undated(scene: Scene, step: Line, told: Line) -> int:
    """Lines between the last step and what ended the job that have the step's time for want of their own."""
    behind = [line for line in scene.lines(step.file) if line.number > step.number and line.text.strip()]
    if told.file == step.file:
        behind = [line for line in behind if line.number < told.number]
    return sum(line.time == step.time for line in behind)
