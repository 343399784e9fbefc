"""What a watching script notes of a job again and again: the step that it stands at, or the load of its GPUs.

The job's own lines end among healthy steps, or before the first one, and many of them tell no time. That it
stands still is told by notes with times of their own, the later ones of which show no other step, or GPUs in
whose memory the job lies and that do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logtriage.localize.never_began import Standstill
from logtriage.localize.onlookers import LATER_SECONDS, LEAST_MIB, Sight
from logtriage.localize.progress import Trace, usual_interval
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Level, Line, SourceRole
from logtriage.regex import regex

LATER_INTERVALS = 30.0  # of the usual ones between steps
NOTES = 3  # with the same step, between the first and last of which it stood still
# `last_iteration=4105 since=05:00:20`, `still at step 812`
_STEP = regex(
    r"(?i)\b(?:(?:last|current|latest|global|cur|train)[_ ]?)?(?:iter(?:ation)?|step)s?\b[\"']?"
    r"(?: ?[=:#] ?| (?:is |at )?)[\"']?(?P<step>\d{1,9})(?![\d.%])"
)


def standing_by_notes(scene: Scene, last: Line, traces: Sequence[Trace]) -> Sight | None:
    """The last of a watcher's notes that show the last step, and no later one, for far too long."""
    step = next((trace.last.step for trace in traces if trace.last.line == last), None)
    if step is None or len({trace.last.step for trace in traces}) > 1:
        return None
    patience = max(LATER_SECONDS, LATER_INTERVALS * usual_interval(traces))
    for reading in scene.readings:
        if reading.source.file in {trace.file for trace in traces}:
            continue
        noted = list(_notes(reading.lines))
        same = [line for line, told in noted if told == step]
        if len(same) < NOTES or noted[-1][1] != step or any(told > step for _, told in noted):
            continue
        silence = (same[-1].time or 0.0) - (same[0].time or 0.0)
        if silence > patience:
            return Sight(same[-1], f"for {silence:.0f} s a watcher noted the same step")
    return None


def _notes(lines: Sequence[Line]) -> Iterator[tuple[Line, int]]:
    """Dated lines with the step that they tell."""
    for line in lines:
        if line.time is not None and (told := _STEP.search(line.message[:400])) is not None:
            yield line, int(told["step"])


_PERCENT = regex(r"(?<![\d.])(\d{1,3}) ?%")
_MIB = regex(r"(?<![\d.])(\d{3,7}) ?MiB")
IDLE = 5  # per cent
_OF_GPUS = (SourceRole.HARDWARE, SourceRole.METRICS)


def idle_since_start(scene: Scene) -> Standstill | None:
    """Where polls of GPUs in use show for long after a job's last line that none of them computed.

    No step was ever reported. The polls began when the job still wrote, so their clock is the job's own. Busy
    GPUs would prove nothing: a program may well train without a word.
    """
    lines = [line for reading in scene.readings if reading.source.role in JOB_ROLES for line in reading.lines]
    dated = [line for line in lines if line.time is not None]
    if not dated or any(line.level in (Level.ERROR, Level.CRITICAL) for line in lines):
        return None
    newest = max(dated, key=lambda line: line.time or 0.0)
    end = newest.time or 0.0
    for reading in scene.readings:
        if reading.source.role not in _OF_GPUS:
            continue
        polls = [(line, busy) for line in reading.lines if (busy := _load(line)) is not None]
        late = [(line, busy) for line, busy in polls if (line.time or 0.0) > end]
        if len(late) < NOTES or any(busy > IDLE for _, busy in late):
            continue
        silence = (late[-1][0].time or 0.0) - end
        watched = (late[-1][0].time or 0.0) - (late[0][0].time or 0.0)
        if min(silence, watched) > LATER_SECONDS and (late[0][0].time or 0.0) - end < LATER_SECONDS / 2:
            why = f"for {silence:.0f} s after the last line, before any step, its GPUs did nothing"
            return Standstill(newest, late[-1][0], why)
    return None


def _load(line: Line) -> int | None:
    """How busy a GPU is in whose memory a process lies, of a dated row of `nvidia-smi --query-gpu`."""
    if line.time is None:
        return None
    busy, used = _PERCENT.findall(line.text[:600]), _MIB.findall(line.text[:600])
    return max(map(int, busy)) if busy and used and int(used[0]) >= LEAST_MIB else None
