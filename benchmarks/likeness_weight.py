"""The weight of likeness in `agent/votes.confidence`, fitted leave-one-out on labelled cases.

    python benchmarks/likeness_weight.py CASES... > benchmarks/results/likeness-weight.md

Each case in turn is the new job, all others are the memory. Its likeness to a type is that of the nearest
confirmed diagnosis of that type among the three nearest (as a triage recalls them), else 0. Two sorts of
claims are made of each case: its true type, and the wrong types whose words its evidence has as well, which
are what the check of a vote lets through; both sorts weigh the same in all. The weight is what a logistic
regression gives a unit of likeness, so that what agreement and the offline verdict are worth stays outside;
its spread is that of 200 draws of as many cases with repetition.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from embedding import Case, best_line, cases

from logtriage.agent.bearing import NEAR_TOP, WORDS_SCORE
from logtriage.diagnose.recalled import MOST_RECALLED
from logtriage.memory.embedding import chosen_embedding
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.vocabulary import vocabulary

DRAWS = 200
RIDGE = 1e-3  # keeps a draw in which all claims of a sort are alike from having no solution
EDGES = (0.0, 0.01, 0.5, 0.65, 0.8, 1.01)

Claim = tuple[float, float, float]  # likeness, whether it is right, weight


def claims(jobs: Sequence[Case]) -> list[list[Claim]]:
    """The claims on each case."""
    likeness = best_line(chosen_embedding("lexical"), jobs)
    words = vocabulary(load_bank().rules)
    found = []
    for index, job in enumerate(jobs):
        nearest = [int(each) for each in np.argsort(-likeness[index]) if each != index][:MOST_RECALLED]

        def of_type(name: str, index: int = index, nearest: Sequence[int] = nearest) -> float:
            own = (likeness[index][each] for each in nearest if jobs[each].failure_type == name)
            return float(max(own, default=0.0))

        scores = words.scores("\n".join(job.lines))
        least = max(WORDS_SCORE, NEAR_TOP * max(scores.values(), default=0.0))
        wrong = [name for name, score in scores.items() if score >= least and name != job.failure_type]
        found.append(
            [(of_type(job.failure_type), 1.0, 1.0)]
            + [(of_type(name), 0.0, 1 / len(wrong)) for name in sorted(wrong)]
        )
    return found


def fitted(sample: Sequence[Sequence[Claim]]) -> float:
    """The weight of likeness, by Newton's method."""
    values, right, share = np.array([claim for each in sample for claim in each]).T
    x = np.stack([np.ones_like(values), values], axis=1)
    weights = np.zeros(2)
    for _ in range(40):
        p = 1 / (1 + np.exp(-x @ weights))
        slope = x.T @ (share * (right - p)) - RIDGE * weights
        weights += np.linalg.solve((x.T * (share * p * (1 - p))) @ x + RIDGE * np.eye(2), slope)
    return float(weights[1])


def main(arguments: Sequence[str]) -> int:
    told = claims(cases([Path(each) for each in arguments]))
    random = np.random.default_rng(1)
    drawn = [fitted([told[at] for at in random.integers(len(told), size=len(told))]) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, [0.05, 0.95])
    print("# What the likeness of a confirmed diagnosis is worth\n")
    print("By `benchmarks/likeness_weight.py`, which says how.\n")
    spread = f"in nine of ten draws {low:.2f} to {high:.2f}"
    print(f"{len(told)} labelled jobs; weight {fitted(told):.2f}, {spread}\n")
    print("| likeness to the claimed type | claims that are right | wrong | right, of equally many |")
    print("| --- | --- | --- | --- |")
    flat = [claim for each in told for claim in each]
    for start, end in pairwise(EDGES):
        inside = [claim for claim in flat if start <= claim[0] < end]
        good = sum(share for _, right, share in inside if right)
        bad = sum(share for _, right, share in inside if not right)
        if inside:
            name = "not among the nearest" if not start else f"{start:.2f} to {min(end, 1):.2f}"
            print(f"| {name} | {good:.0f} | {bad:.1f} | {good / (good + bad):.0%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
