"""The last epoch of a known number of them: trainers without a word for their end stop after it.

OpenMMLab's runners, YOLOX and many loops of one's own only save and evaluate after the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from logtriage.localize.progress import Progress, StepPoint
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

# `epoch: 3/300, iter: …`, `Epoch [10/10], Step [600/600]`.
_EPOCH_OF = regex(r"(?i)\bepochs?[ :=]{0,3}[\[(]? ?(?P<epoch>\d{1,6}) ?(?:/|of) ?(?P<total>\d{1,6})\b")
# `Epoch(train) [12][6500/7330]`, `Epoch [12][6500/7330]` of OpenMMLab, which counts from 1.
_OPENMMLAB = regex(r"\bEpoch ?(?:\(train\))? ?\[(?P<epoch>\d{1,6})\]\[ *\d{1,9}/\d{1,9}\]")
# In a dumped configuration, and `workflow: [('train', 1)], max: 12 epochs` of mmcv.
_TOTAL = regex(
    r"\b(?:max_epochs|total_epochs)['\"]? ?[=:] ?(?P<total>\d{1,6})\b|\bmax: (?P<most>\d{1,6}) epochs\b"
)
_ETA = regex(r"\beta: (?:(?P<days>\d{1,4}) days?, )?(?P<hours>\d{1,3}):(?P<minutes>\d\d):(?P<seconds>\d\d)\b")
_SECONDS_A_STEP = regex(r"\b(?:iter_)?time: ?(?P<seconds>\d{1,5}\.\d{1,6})")
# What is left of the last epoch by its own steps; an average over all steps may say somewhat more.
ETA_SLACK = 1.5

_SAVED = regex(
    r"(?i)\bsav(?:ing|ed?)\b[^\n]{0,60}\b(?:checkpoints?|ckpt|weights|models?|state(?:_dict)?)\b"
    r"|\bcheckpoint\b[^\n]{0,60}\bsaved\b"
)
_EVALUATED = regex(
    r"(?i)\bEpoch ?\(val\) ?\[\d{1,6}\](?:\[ *(?P<done>\d{1,9})(?:/(?P<all>\d{1,9}))?\])?"
    r"|\bval(?:idation)?[_ ](?:loss|acc|accuracy|map|miou|ppl)\b|\bbbox_mAP\b"
)


def after_last_epoch(scene: Scene, progress: Progress) -> Line | None:
    """The line that saves or evaluates the last epoch, where nothing is left to train; None otherwise."""
    last = progress.last_step
    if last is None or not _is_last_epoch(scene, last) or not _is_at_its_end(progress, last):
        return None
    lines = scene.lines(last.line.file)
    since = [line for line in lines if line.number > last.line.number]
    saved = [line for line in since if _SAVED.search(line.text[:600])]
    evaluated = [line for line in since if _is_evaluation(line)]
    between = [line for line in lines if line.number < last.line.number and _is_evaluation(line)]
    if between and not evaluated and not _is_evaluation(last.line):
        return None  # the evaluation of this epoch is still to come
    return max((*saved, *evaluated), key=lambda line: line.number, default=None)


# `Epoch 7/40` on a line of its own, above the bar of that epoch.
_HEADING = regex(r"(?i)^\W{0,8}epoch[ :=]{0,3}(?P<epoch>\d{1,6}) ?(?:/|of) ?(?P<total>\d{1,6})\W{0,8}$")


def is_earlier_epoch(point: StepPoint, scene: Scene) -> bool:
    """Whether a step is of an epoch after which others come, as its own line says or the heading above it."""
    told = _EPOCH_OF.search(point.text[:400])
    if told is None:
        above = [line for line in scene.lines(point.line.file) if line.number < point.line.number]
        headings = (_HEADING.match(line.message[:60]) for line in reversed(above) if "poch" in line.text[:60])
        told = next((each for each in headings if each is not None), None)
    return told is not None and int(told["epoch"]) < int(told["total"])


def _is_evaluation(line: Line) -> bool:
    """Whether a line tells of the result of an evaluation, not of a part of it."""
    told = _EVALUATED.search(line.text[:600])
    return told is not None and (told["all"] is None or told["done"] == told["all"])


def _is_last_epoch(scene: Scene, last: StepPoint) -> bool:
    if (told := _EPOCH_OF.search(last.text[:400])) is not None:
        return int(told["epoch"]) == int(told["total"])
    if (told := _OPENMMLAB.search(last.text[:400])) is None:
        return False
    totals = _totals(scene)
    return int(told["epoch"]) in totals if totals else _is_nothing_left(last)


def _totals(scene: Scene) -> set[int]:
    return {
        int(told["total"] or told["most"])
        for reading in scene.readings
        for line in reading.lines
        if "epochs" in line.text and (told := _TOTAL.search(line.text[:1000])) is not None
    }


def _is_nothing_left(last: StepPoint) -> bool:
    """Whether the time that is left by the trainer's own account is that of the rest of this epoch."""
    eta, step = _ETA.search(last.text[:600]), _SECONDS_A_STEP.search(last.text[:600])
    if eta is None or step is None or last.total is None:
        return False
    days, hours, minutes, seconds = (int(each or 0) for each in eta.groups())
    left = 86_400 * days + 3_600 * hours + 60 * minutes + seconds
    return left <= ETA_SLACK * (last.total - last.step) * float(step["seconds"]) + 1.0


def _is_at_its_end(progress: Progress, last: StepPoint) -> bool:
    """Whether no further report of a step was to be expected in this epoch."""
    if last.total is None:
        return True
    points: Sequence[StepPoint] = next(
        (trace.points for trace in progress.traces if trace.last == last), (last,)
    )
    gaps = [later.step - earlier.step for earlier, later in pairwise(points) if later.step > earlier.step]
    return last.total - last.step < max(min(gaps[-3:], default=1), 1)
