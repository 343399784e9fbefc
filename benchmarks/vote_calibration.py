"""The weights of `agent/votes.confidence`, fitted on simulated votes; no cases and no model are needed.

    python benchmarks/vote_calibration.py > benchmarks/results/vote-calibration.md

The simulated model has a stated accuracy (0.5, 0.7, 0.9) and is made up on the gloomy side:

- Of a case it is right with a chance of its own, drawn from a beta distribution around its accuracy with
  concentration 1: most cases it understands almost always or almost never, so agreement alone proves little.
- Nine of ten wrong votes on a case name the same wrong type; where the offline verdict is wrong, that is its
  type in every other case, since the same line misleads both.
- The check against the logs lets 0.9 of the right votes pass and 0.8 of the wrong ones.
- Five votes at most, and no more than can still change the outcome. More than half of all must agree.

The offline verdict is right as often as it claims (or there is none). A logistic regression is fitted to the
outcomes in which the votes confirm the offline verdict, or decide where there is none; the tables are of
another draw.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from logtriage.agent.votes import confidence, is_settled
from logtriage.evaluation.figures import Reliability, reliability

ACCURACIES = (0.5, 0.7, 0.9)
OFFLINE = (0.0, 0.55, 0.7, 0.8, 0.88, 0.95)  # 0: no offline verdict
CONCENTRATION = 1.0
FAVOURED = 0.9
SHARED = 0.5
PASSES = {True: 0.9, False: 0.8}
MOST_VOTES = 5
DRAWS = 4000  # of each accuracy and offline confidence


@dataclass(frozen=True)
class Outcome:
    """Votes that agree; `offline` is the confidence of the verdict that they confirm, else 0."""

    accuracy: float
    offline: float
    agreement: float
    is_right: bool


def competence(accuracy: float, random: np.random.Generator) -> float:
    """How often the model is right on one case."""
    return float(random.beta(accuracy * CONCENTRATION, (1 - accuracy) * CONCENTRATION))


def outcome(accuracy: float, offline: float, random: np.random.Generator) -> Outcome | None:
    """One case; None where the votes change nothing."""
    right_offline = bool(random.random() < offline)
    favourite = "offline" if offline and not right_offline and random.random() < SHARED else "other"
    chance = competence(accuracy, random)
    tally: Counter[str] = Counter()
    cast = 0
    while cast < MOST_VOTES:
        if cast > MOST_VOTES // 2 and is_settled(tally, MOST_VOTES - cast):
            break
        cast += 1
        is_right = bool(random.random() < chance)
        wrong = favourite if random.random() < FAVOURED else f"odd {random.integers(4)}"
        name = "truth" if is_right else wrong
        if random.random() < PASSES[is_right]:
            tally[name] += 1
    name, count = tally.most_common(1)[0] if tally else ("", 0)
    if count * 2 <= cast or (offline and name != ("truth" if right_offline else "offline")):
        return None
    return Outcome(accuracy, offline, count / cast, name == "truth")


def outcomes(seed: int) -> list[Outcome]:
    random = np.random.default_rng(seed)
    drawn = (
        outcome(accuracy, offline, random)
        for accuracy in ACCURACIES
        for offline in OFFLINE
        for _ in range(DRAWS)
    )
    return [each for each in drawn if each is not None]


FEATURES = ("bias", "agreement", "confirms", "offline log odds")


def features(each: Outcome) -> list[float]:
    odds = float(np.log(each.offline / (1 - each.offline))) if each.offline else 0.0
    return [1.0, each.agreement, float(each.offline > 0), odds]


def fitted(sample: Sequence[Outcome]) -> np.ndarray:
    """Weights of a logistic regression, by Newton's method."""
    x = np.array([features(each) for each in sample])
    y = np.array([float(each.is_right) for each in sample])
    weights = np.zeros(len(FEATURES))
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ weights))
        weights += np.linalg.solve((x.T * (p * (1 - p))) @ x, x.T @ (y - p))
    return weights


def table(title: str, told: Sequence[tuple[float, bool]]) -> None:
    """(confidence, was right) as a table of bins."""
    found: Reliability = reliability(told)
    errors = f"calibration error {found.ece:.3f}, Brier {found.brier:.3f}"
    print(f"\n## {title}\n\n{len(told)} verdicts, {errors}\n")
    print("| confidence | verdicts | mean | right |\n| --- | --- | --- | --- |")
    for each in found.bins:
        span = f"{each.low:.1f} to {each.high:.1f}"
        print(f"| {span} | {each.count} | {each.confidence:.2f} | {each.right:.2f} |")


def main() -> int:
    print("# Votes: how often verdicts are right\n\nBy `benchmarks/vote_calibration.py`, which says how.\n")
    print("| feature | weight |\n| --- | --- |")
    for name, weight in zip(FEATURES, fitted(outcomes(1)), strict=True):
        print(f"| {name} | {weight:.2f} |")
    held = outcomes(2)

    def told(sample: Sequence[Outcome]) -> list[tuple[float, bool]]:
        return [(confidence(each.agreement, offline_agrees=each.offline), each.is_right) for each in sample]

    table("All", told(held))
    table("Votes decide", told([each for each in held if not each.offline]))
    table("Votes confirm", told([each for each in held if each.offline]))
    for accuracy in ACCURACIES:
        table(f"A model of accuracy {accuracy}", told([each for each in held if each.accuracy == accuracy]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
