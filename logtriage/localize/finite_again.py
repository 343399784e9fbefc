"""NaN, infinities and spikes that a program stepped over: the losses after them are as before."""

from __future__ import annotations

from collections.abc import Iterable

from logtriage.localize.candidates import Candidate
from logtriage.localize.divergence import loss_told
from logtriage.localize.progress import Progress, median
from logtriage.localize.scene import Scene
from logtriage.regex import regex
from logtriage.rulebank.rule import Strength

FINITE_LOSSES = 20  # so many of the same writer after the last NaN


def stepped_over(candidates: Iterable[Candidate], scene: Scene) -> frozenset[tuple[str, int]]:
    """Files and numbers of lines that tell of NaN by the way, where finite losses follow the last of them.

    A NaN that reached the weights leaves no later loss finite. What an exception tells ended its program.
    """
    told: dict[tuple[str, int | None], list[Candidate]] = {}
    for each in candidates:
        if each.failure_type == "numerics.nan":
            told.setdefault((each.line.file, each.line.rank), []).append(each)
    found: set[tuple[str, int]] = set()
    for (file, rank), of_writer in told.items():
        if any(each.record is not None for each in of_writer):
            continue
        last = max(each.line.number for each in of_writer)
        finite = 0
        for line in scene.lines(file):
            if line.number > last and line.rank == rank and loss_told(line.message) is not None:
                finite += 1
                if finite >= FINITE_LOSSES:
                    found.update((file, each.line.number) for each in of_writer)
                    break
    return frozenset(found)


CAME_BACK = 1.1  # times the usual loss before a spike: so high it may be at the end


def spikes_left_behind(candidates: Iterable[Candidate], scene: Scene) -> frozenset[tuple[str, int]]:
    """Files and numbers of lines that only warn of a spike, after which the loss came back and stayed so.

    The losses are those of the same file: what was usual before the first warning against the last ones.
    """
    warned: dict[str, list[int]] = {}
    for each in candidates:
        if each.failure_type == "numerics.divergence":
            is_hint = each.strength is Strength.HINT and each.record is None
            warned.setdefault(each.line.file, []).append(each.line.number if is_hint else -1)
    found: set[tuple[str, int]] = set()
    for file, numbers in warned.items():
        told = [(line.number, loss_told(line.message)) for line in scene.lines(file)]
        before = [loss for number, loss in told if loss is not None and number < min(numbers)]
        after = [loss for number, loss in told if loss is not None and number > max(numbers)]
        if not before or len(after) < FINITE_LOSSES or min(numbers) < 0:
            continue
        if median(after[-FINITE_LOSSES:]) <= CAME_BACK * median(before[-FINITE_LOSSES:]):
            found.update((file, number) for number in numbers)
    return frozenset(found)


_GRADIENT_NAN = regex(r"(?i)grad(?:ient)?[_ ]?norm[\"']?\s*[:=]?\s*[\"']?nan\b")


def is_of_gradients(text: str) -> bool:
    """Whether a line tells of the gradients' norm alone."""
    return _GRADIENT_NAN.search(text[:2000]) is not None


def unfilled_norms(candidates: Iterable[Candidate], progress: Progress) -> set[str]:
    """Files whose NaN gradient norms mean nothing: the losses after them stay finite.

    One NaN gradient that is applied spoils all weights, so that the next losses would be NaN as well.
    """
    first: dict[str, int] = {}
    for each in candidates:
        if each.failure_type == "numerics.nan" and each.rule is not None:
            of_norm = is_of_gradients(each.line.text)
            at = min(first.get(each.line.file, each.line.number), each.line.number)
            first[each.line.file] = at if of_norm else -1
    found = set()
    for trace in progress.traces:
        begin = first.get(trace.file, -1)
        later = [point for point in trace.points if point.line.number > begin >= 0]
        if len(later) >= FINITE_LOSSES and all(loss_told(point.text) for point in later):
            found.add(trace.file)
    return found
