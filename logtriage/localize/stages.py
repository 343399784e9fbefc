"""The course of a job: in which stage, and in which iteration, it was at a line.

L4 (FSE'25) splits a log into environment set-up, loading, iterating and saving, and asks in which of them a
failure lies; three of four strike while iterating. Here a stage begins with a line that says so (rules with
`marks: loading | compiling | evaluating | saving`) and ends with a step, a saved checkpoint, a resumed run or
the next such line. Where an exception was raised says more than what was logged before.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from logtriage.localize.progress import Progress, StepPoint, median, usual_interval
from logtriage.localize.scene import Scene
from logtriage.model import ClockOffset, Line, Raised
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark


class Stage(StrEnum):
    START_UP = "start-up"
    LOADING = "loading"
    COMPILING = "compiling"
    ITERATING = "iterating"
    EVALUATING = "evaluating"
    SAVING = "saving"


@dataclass(frozen=True, slots=True)
class Turn:
    """A line from which on its writer is in a stage."""

    stage: Stage
    line: Line
    rank: int | None
    time: float | None  # on the job's axis


@dataclass(frozen=True, slots=True)
class Moment:
    """Where in the job's course a line lies: `line` shows the stage, if one does.

    `iteration` is the last one that was reported before, by the same writer or by anybody: the failure lies
    in it or in the next. None where none was.
    """

    stage: Stage
    line: Line | None
    why: str
    iteration: int | None


@dataclass(frozen=True, slots=True)
class Course:
    """The turns of all writers, by file in the order of lines and all dated ones in the order of time."""

    progress: Progress
    by_file: dict[str, list[Turn]]
    dated: list[Turn]
    steps: list[tuple[float, StepPoint]]  # all dated ones, in the order of time
    interval: float  # the usual time between steps in seconds, 0 where it is not known
    saves_beside: bool  # whether it goes on with its steps while it saves, as asynchronous checkpoints let it

    def without_saving(self) -> Course:
        return replace(
            self,
            by_file={
                file: [each for each in turns if each.stage is not Stage.SAVING]
                for file, turns in self.by_file.items()
            },
            dated=[each for each in self.dated if each.stage is not Stage.SAVING],
        )


_STAGES = {
    Mark.LOADING: Stage.LOADING,
    Mark.COMPILING: Stage.COMPILING,
    Mark.EVALUATING: Stage.EVALUATING,
    Mark.SAVING: Stage.SAVING,
    Mark.STARTED: Stage.ITERATING,
    Mark.STEP: Stage.ITERATING,
    Mark.CHECKPOINT: Stage.ITERATING,  # it is saved
}


def gather_course(scene: Scene, progress: Progress, offsets: dict[str, ClockOffset]) -> Course:
    """The turns of a job; a line that also names a step belongs to the stage that it names."""
    found: dict[tuple[str, int], Turn] = {}

    def axis(line: Line) -> float | None:
        if line.time is None or line.file not in offsets:
            return line.time
        return line.time + offsets[line.file].seconds

    first_step = {trace.file: min(point.line.number for point in trace.points) for trace in progress.traces}
    saved = {(each.line.file, each.line.number) for each in scene.marked(Mark.CHECKPOINT)}
    for sign in (*scene.progress, *scene.context):
        mark, line = sign.rule.marks, sign.line
        stage = _STAGES.get(mark) if mark is not None else None
        if mark is Mark.RESUMED:
            has_stepped = line.number > first_step.get(line.file, line.number)
            stage = Stage.ITERATING if has_stepped else Stage.START_UP
        if mark is Mark.SAVING and (line.file, line.number) in saved:
            continue  # `finished saving …`
        known = found.get((line.file, line.number))
        if stage is not None and (known is None or known.stage is Stage.ITERATING):
            found[line.file, line.number] = Turn(stage, line, sign.rank, axis(line))
    for trace in progress.traces:  # a closer look knows more of them than the scene
        for point in trace.points:
            turn = Turn(Stage.ITERATING, point.line, trace.rank, axis(point.line))
            found.setdefault((trace.file, point.line.number), turn)
    by_file: dict[str, list[Turn]] = defaultdict(list)
    for (file, _), turn in sorted(found.items()):
        by_file[file].append(turn)
    steps = [
        (when, point)
        for trace in progress.traces
        for point in trace.points
        if (when := axis(point.line)) is not None
    ]
    steps.sort(key=lambda step: step[0])
    dated = sorted(
        (turn for turn in found.values() if turn.time is not None), key=lambda turn: turn.time or 0.0
    )
    interval = usual_interval(progress.traces)
    ended = sorted(when for each in progress.checkpoints if (when := axis(each.line)) is not None)
    return Course(
        progress=progress,
        by_file=dict(by_file),
        dated=dated,
        steps=steps,
        interval=interval,
        saves_beside=_saves_beside(dated, ended, [(when, point.step) for when, point in steps], interval),
    )


def _saves_beside(
    dated: Sequence[Turn], ended: Sequence[float], steps: Sequence[tuple[float, int]], interval: float
) -> bool:
    """Whether steps were reported in the midst of most saves that were seen whole.

    A save begins with the first line that says so after the last one's end. The step that is saved may be
    reported within half of an interval after that; of a job that waits for its saves no other is.
    """
    stepped = [when for when, _ in steps]
    begun = [turn.time for turn in dated if turn.stage is Stage.SAVING and turn.time is not None]
    last, found = -math.inf, []
    for end in ended:
        at = bisect.bisect_right(begun, last)
        if at < len(begun) and begun[at] < end:
            middle = bisect.bisect_left(stepped, begun[at] + interval / 2)
            found.append(middle < len(stepped) and stepped[middle] < end)
        last = end
    if interval > 0 and sum(found) * 2 > len(found):
        return True
    # Of saves whose ends are not told: whether the next step came as soon as ever, and did so most times.
    skips = [later[1] - earlier[1] for earlier, later in pairwise(steps) if later[1] > earlier[1]]
    usual = median(skips) if skips else 0
    pauses: list[float] = []
    done = -math.inf
    for begin in begun:
        at = bisect.bisect_right(stepped, begin)
        if begin > done and 0 < at < len(steps) and steps[at][1] - steps[at - 1][1] == usual:
            pauses.append(stepped[at] - stepped[at - 1])
            done = stepped[at] + interval / 2
    soon = sum(pause <= AS_EVER * interval for pause in pauses)
    return not found and len(pauses) >= LEAST_SAVES and soon * 4 > len(pauses) * 3


LEAST_SAVES = 2
AS_EVER = 1.3  # times the usual interval


# Functions in whose frames an exception shows in which stage it was raised; the innermost that tells decides.
_FRAMES = (
    (
        Stage.SAVING,
        regex(
            r"(?i)(?:^|_)save(?:_|d?$)|save_?(?:checkpoint|state|model|pretrained|sharded)"
            r"|write_(?:item|data|shard)"
        ),
    ),
    (
        Stage.LOADING,
        regex(
            r"(?i)load_?(?:checkpoint|state|model|weights|pretrained|sharded|ckpt)|from_pretrained|restore|resume"
        ),
    ),
    (
        Stage.EVALUATING,
        regex(r"(?i)(?:^|_)(?:evaluat\w*|validat(?:e|ion)(?:_step|_loop|_epoch)?|eval_(?:step|loop|epoch))$"),
    ),
    (
        Stage.ITERATING,
        regex(
            r"(?i)train(?:ing)?_(?:step|batch|one|epoch|loop)|forward_backward|forward_step|optimizer_step"
            r"|^backward$"
        ),
    ),
)
_LOADERS = regex(r"torch/utils/data/|webdataset/|streaming/base/|/dataloader\.py$")
_COMPILERS = regex(r"torch/_inductor/|triton/compiler/|utils/cpp_extension\.py|/jit/compil")
# What a failure's own words say of the stage.
_WORDS = (
    (
        Stage.SAVING,
        regex(
            r"(?i)\b(?:sav(?:e|ing)|writ(?:e|ing)|upload(?:ing)?|persist(?:ing)?|finali[sz](?:e|ing))\b[^\n]{0,50}"
            r"\b(?:checkpoint|ckpt|shard|snapshot)"
            r"|\b(?:checkpoint|ckpt|shard)[^\n]{0,50}\b(?:writ|sav|upload)(?:ing|e)?\b"
        ),
    ),
    (
        Stage.LOADING,
        regex(
            r"(?i)\b(?:load|restor|resum|read)(?:e|ing)?\b[^\n]{0,50}"
            r"\b(?:checkpoint|ckpt|state.?dict|weights|snapshot)"
        ),
    ),
)
_IS_OVER = regex(r"(?i)\b(?:finished|completed|successfully|done)\b")
_OF_LOADING = ("checkpoint.",)
_OF_STEPS = ("slow.", "numerics.", "data.")  # who asks for samples, too, is not saving
_OF_STORING = ("host.disk_full", "storage.")
_OF_START_UP = ("scheduler.launch", "code.argument", "code.syntax", "network.rendezvous", "collective.init")
_NAMED = regex(r"(?i)\b(?:global[_ ])?(?:iteration|iter|step)s?(?:[ =:#]|\bat\b){0,3}\[?(\d{1,12})\b")
_LARGE = regex(r"(?<![\w.:/-])(?:\w{1,12}=)?(\d{4,9})(?![\w.:-])")
LARGE = 1000
NEAR_STEPS = 20
RECENT_INTERVALS = 3.0
RECENT_SECONDS = 20.0


def moment(
    course: Course,
    line: Line,
    time: float | None,
    *,
    rank: int | None = None,
    raised: Raised | None = None,
    introduction: Line | None = None,
    failure_type: str = "",
) -> Moment:
    """Where `line`, written at `time` on the job's axis, lies in the job's course.

    `introduction` is what its writer said right before, such as that a save failed above the traceback of it.
    """
    beside = course.saves_beside or failure_type.startswith(_OF_STEPS)
    if beside and not failure_type.startswith(_OF_STORING):
        course = course.without_saving()
    own = _own_turn(course, line, rank)
    common = _turn_at(course, time)
    iteration = _iteration(course, line, time)
    if raised is not None and (stage := _stage_of_frames(raised)) is not None:
        return Moment(stage, raised.at, "by where it was raised", iteration)
    if introduction is not None and _IS_OVER.search(introduction.message[:600]):
        introduction = None
    for said in (line, introduction):
        if said is introduction and failure_type.startswith(_OF_LOADING):
            stage = Stage.LOADING
            shown = next((each for each in (own, common) if each is not None and each.stage is stage), None)
            return Moment(stage, shown.line if shown else None, "a checkpoint was read", iteration)
        for stage, words in _WORDS:
            if said is not None and words.search(said.message[:600]):
                return Moment(stage, said, "by its own words", iteration)
    of_rank = rank is not None or raised is not None
    if failure_type == "host.disk_full" and iteration is not None and of_rank:
        return Moment(Stage.SAVING, None, "what a rank stores among its steps is a checkpoint", iteration)
    turn = _likelier(own, common, course.interval)
    if turn is None or (failure_type.startswith(_OF_START_UP) and iteration is None):
        return Moment(Stage.START_UP, None, "before the first step", iteration)
    return Moment(turn.stage, turn.line, f"after line {turn.line.number} of {turn.line.file}", iteration)


def _stage_of_frames(raised: Raised) -> Stage | None:
    for frame in reversed(raised.frames):
        if _COMPILERS.search(frame.path):
            return Stage.COMPILING
        for stage, names in _FRAMES:
            if names.search(frame.function):
                return stage
    # No function tells, but who asks for the next samples is about to use them.
    return Stage.ITERATING if any(_LOADERS.search(frame.path) for frame in raised.frames) else None


def _own_turn(course: Course, line: Line, rank: int | None) -> Turn | None:
    """The last turn before the line by the same writer."""
    turns = course.by_file.get(line.file, [])
    before = turns[: bisect.bisect_right(turns, line.number, key=lambda turn: turn.line.number)]
    return next(
        (turn for turn in reversed(before) if rank is None or turn.rank is None or turn.rank == rank), None
    )


def _turn_at(course: Course, time: float | None) -> Turn | None:
    if time is None:
        return course.dated[-1] if course.dated else None
    at = bisect.bisect_right(course.dated, time, key=lambda turn: turn.time or 0.0)
    return course.dated[at - 1] if at else None


def _likelier(own: Turn | None, common: Turn | None, interval: float) -> Turn | None:
    """The writer's own stage, unless others went on since: all ranks save, evaluate and step together."""
    if own is None or common is None:
        return own or common
    if own.time is None or common.time is None:
        return common if common.stage is Stage.ITERATING else own
    if common.time < own.time:
        return own
    if own.stage in (Stage.ITERATING, Stage.START_UP):
        return common
    return common if common.time - own.time > max(RECENT_SECONDS, RECENT_INTERVALS * interval) else own


def _iteration(course: Course, line: Line, time: float | None) -> int | None:
    """The iteration that the line names, or the last that was reported before it."""
    last = _last_step(course, line, time)
    named = _NAMED.search(line.message[:600])
    if named is not None:
        said = int(named[1])
        if last is None or abs(said - last) <= max(2, last // 1000):
            return said
    # A large number that lies so near to the last step is one, whatever it is called.
    near = {int(each) for each in _LARGE.findall(line.message[:600]) if last is not None and last >= LARGE}
    near = {each for each in near if last is not None and abs(each - last) <= NEAR_STEPS}
    return near.pop() if len(near) == 1 else last


def _last_step(course: Course, line: Line, time: float | None) -> int | None:
    traces = course.progress.traces
    own = [point for trace in traces if trace.file == line.file for point in trace.points]
    own = [point for point in own if point.line.number <= line.number]
    if time is None or not course.steps:
        last = max(own, key=lambda point: point.line.number, default=None) or course.progress.last_step
        return last.step if last is not None else None
    at = bisect.bisect_right(course.steps, time, key=lambda step: step[0])
    if not at:
        return None
    since = course.steps[at - 1][0] - course.interval  # ranks report the same step one after another
    begin = bisect.bisect_left(course.steps, since, key=lambda step: step[0])
    return max(point.step for _, point in course.steps[begin:at])
