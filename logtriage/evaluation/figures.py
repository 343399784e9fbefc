"""What many scores come to: shares, types, what is taken for what, and how much confidence is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.evaluation.score import CITED, OVERCLAIM, Score

BIN_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # confidences below one half are one bin


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over the cases that can say something of it."""

    name: str
    value: float
    cases: int
    means: str


@dataclass(frozen=True, slots=True)
class TypeFigure:
    """How the cases of one type went; `named` counts verdicts of this type on all cases, right or wrong."""

    failure_type: str
    cases: int
    right: int
    named: int
    named_rightly: int
    confidence: float  # the mean of its cases


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts whose confidence lies in [low, high), the last bin with its upper end."""

    low: float
    high: float
    count: int
    confidence: float  # the mean
    right: float  # the share


@dataclass(frozen=True, slots=True)
class Reliability:
    """Bins that hold something; `brier` is the mean squared error of the confidences.

    `ece`: expected calibration error (Guo et al., ICML'17), the distance of confidence and share of right
    verdicts over the bins, weighed by their counts.
    """

    bins: tuple[Bin, ...]
    brier: float
    ece: float


def figures(scores: Sequence[Score]) -> list[Figure]:
    """The figures in a fixed order; one that no case can say anything of is left out.

    A case without a verdict is wrong in type, class, evidence and soundness, and counts nowhere else.
    """
    wanted: tuple[tuple[str, Callable[[Score], float | None], str], ...] = (
        ("type", lambda each: each.type, "the failure type is right, or as good"),
        ("class", lambda each: each.class_, "its class is"),
        ("evidence", lambda each: each.evidence, f"of the first {CITED} cited lines one is the label's"),
        ("rank", lambda each: each.rank, "exactly the label's ranks are blamed"),
        ("host", lambda each: each.host, "exactly its hosts are"),
        ("sound", lambda each: each.sound, "all cited lines stand there"),
        ("alarm", lambda each: each.alarm, "a failure is named where nothing failed (better: less)"),
        ("overclaim", _answered(lambda each: each.overclaim), f"wrong at {OVERCLAIM} or more (better: less)"),
        ("brier", _answered(lambda each: each.brier), "squared error of the confidence (better: less)"),
    )
    found = []
    for name, value, means in wanted:
        values = [float(told) for each in scores if (told := value(each)) is not None]
        if values:
            found.append(Figure(name, sum(values) / len(values), len(values), means))
    return found


def _answered(value: Callable[[Score], float]) -> Callable[[Score], float | None]:
    return lambda each: None if each.error else value(each)


def by_type(scores: Sequence[Score]) -> list[TypeFigure]:
    """The types of the labels and of the verdicts, those with the most cases first."""
    names = {each.truth for each in scores} | {each.got for each in scores if each.got}
    found = []
    for name in names:
        own = [each for each in scores if each.truth == name]
        named = [each for each in scores if each.got == name]
        found.append(
            TypeFigure(
                failure_type=name,
                cases=len(own),
                right=sum(each.type for each in own),
                named=len(named),
                named_rightly=sum(each.type for each in named),
                confidence=sum(each.confidence for each in own) / len(own) if own else 0.0,
            )
        )
    return sorted(found, key=lambda each: (-each.cases, each.failure_type))


def confusion(scores: Sequence[Score]) -> list[tuple[str, str, int]]:
    """(true type, named type, cases) of wrong verdicts, the most frequent first."""
    counts = Counter((each.truth, each.got or "no verdict") for each in scores if not each.type)
    return [(*pair, count) for pair, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def reliability(told: Sequence[tuple[float, bool]]) -> Reliability:
    """Of (confidence, was right): how often verdicts of about the same confidence were right."""
    bins = []
    for low, high in pairwise(BIN_EDGES):
        inside = [pair for pair in told if low <= pair[0] < high or pair[0] == high == BIN_EDGES[-1]]
        if inside:
            mean = sum(confidence for confidence, _ in inside) / len(inside)
            bins.append(Bin(low, high, len(inside), mean, sum(right for _, right in inside) / len(inside)))
    total = max(1, len(told))
    return Reliability(
        bins=tuple(bins),
        brier=sum((confidence - right) ** 2 for confidence, right in told) / total,
        ece=sum(each.count * abs(each.confidence - each.right) for each in bins) / total,
    )
