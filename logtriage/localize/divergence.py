"""A loss that went up and stayed up, without an error: the run goes on and is lost."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.localize.progress import Trace, median
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_LOSS = regex(
    r"(?i)(?<![a-z_/])(?:train(?:ing)?[_ /]|lm[_ ]|total[_ ]|avg[_ ]|mean[_ ]|ce[_ ]|reduced_train_)?loss"
    r"(?:/train)?(?:/total)?[\"']?\s{0,4}[:=|]?\s{0,4}[\"']?(\d{1,9}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?)(?![\d.]*[/%])"
)
_EVALUATION = regex(r"(?i)\b(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)\b")
LEAST_POINTS = 40
LEARNED = 0.2  # of the first loss: a run that never learned so much cannot lose it
LOST = 0.6  # of what was learned
BLOCK_LINES = 16  # of a step's block are looked at
STAYED = 0.1  # of the run, at its end
CONTINUED = 0.05  # share of the losses of a run continued late that may have been as high before it left
EASY_LOSS = 0.05  # below this a loss only wavers


@dataclass(frozen=True, slots=True)
class Divergence:
    """`lines`: where the loss left for good, right after, and the last step; losses as they are printed."""

    best: float
    last: float
    lines: tuple[Line, ...]


def loss_told(text: str) -> float | None:
    """The finite, non-zero training loss that a line tells."""
    told = _LOSS.search(text[:1000])
    return float(told[1]) or None if told is not None else None


def diverged(traces: Sequence[Trace], scene: Scene) -> Divergence | None:
    """Where the longest trace's loss lost most of what it had learned and stayed so to the end.

    Medians of neighbouring points are compared, so that single spikes do not count.
    """
    best: Divergence | None = None
    for trace in sorted(traces, key=lambda each: -len(each.points))[:4]:
        best = best or left(_losses(trace) or _losses_below(trace, scene))
    return best


def _losses(trace: Trace) -> list[tuple[float, Line]]:
    return [
        (float(told[1]), point.line)
        for point in trace.points
        for text in (point.text[:1000],)
        if (told := _LOSS.search(text)) is not None and not _EVALUATION.search(text)
    ]


def _losses_below(trace: Trace, scene: Scene) -> list[tuple[float, Line]]:
    """The losses of programs that print a step as a block: a head, and a line for each value below it."""
    lines = scene.lines(trace.file)
    numbers = [line.number for line in lines]
    found = []
    for point in trace.points:
        at = bisect.bisect_right(numbers, point.line.number)
        for line in lines[at : at + BLOCK_LINES]:
            if not line.message[:1].isspace():
                break  # the block has ended
            if (told := _LOSS.search(line.message[:1000])) is not None and not _EVALUATION.search(
                line.message
            ):
                found.append((float(told[1]), line))
                break
    return found


def left(points: Sequence[tuple[float, Line]]) -> Divergence | None:
    """Where the losses left their lowest level for good; None where they came back, or only waver."""
    if len(points) < LEAST_POINTS:
        return None
    values = [value for value, _ in points]
    width = max(5, len(values) // 40)
    smooth = [median(values[at : at + width]) for at in range(len(values) - width + 1)]
    low = min(smooth)
    where = smooth.index(low)
    end = values[-max(width, int(len(values) * STAYED)) :]
    first = median(values[:width])
    learned = first - low
    continued = learned < LEARNED * first
    if continued:  # it learned before this log began; then the loss must double
        learned = low / LOST
    if low <= 0 or first < EASY_LOSS or where + width >= len(values):
        return None
    if median(end) - low < LOST * learned or min(end) - low < LOST * learned / 2:
        return None
    bar = low + learned * LOST / 2
    at = len(values)
    while at > where and values[at - 1] > bar:
        at -= 1
    if at >= len(values):
        return None
    wavers = len(values) - at < 2 * width or sum(each > bar for each in values[:at]) > CONTINUED * at
    if continued and wavers:
        return None
    lines = [points[at][1], points[min(at + 1, len(points) - 1)][1], points[-1][1]]
    return Divergence(low, median(end), tuple(dict.fromkeys(lines)))
