"""Which embedding finds jobs that died of the same: leave-one-out over labelled cases.

    python benchmarks/embedding.py CASES... > benchmarks/results/embedding.md

Each folder CASES holds cases `<name>/logs` with a `truth.yaml` that names the `failure_type`. A case is what
a verdict without a model cites of it, with numbers, paths and hosts masked. Counted is how often a case of
the same type is among the five nearest others (of types with at least two cases), and how often the nearest.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

os.environ["LOGTRIAGE_DATA_DIR"] = tempfile.mkdtemp()

from logtriage import triage
from logtriage.memory.embedding import Embedding, EmbeddingFault, chosen_embedding
from logtriage.memory.incidents import verdict_lines


@dataclass(frozen=True)
class Case:
    failure_type: str
    lines: tuple[str, ...]


def cases(folders: Sequence[Path]) -> list[Case]:
    found = []
    for truth in sorted(path for folder in folders for path in folder.glob("*/truth.yaml")):
        kind = yaml.safe_load(truth.read_text(encoding="utf-8"))["failure_type"]
        lines = verdict_lines(triage(truth.parent / "logs", offline=True))
        if lines and not kind.startswith("none."):
            found.append(Case(kind, tuple(lines)))
    return found


def whole(embedding: Embedding, jobs: Sequence[Case]) -> np.ndarray:
    """Likeness of all pairs, each job as one text."""
    vectors = np.array(embedding.embed(["\n".join(job.lines) for job in jobs]))
    return vectors @ vectors.T


def best_line(embedding: Embedding, jobs: Sequence[Case]) -> np.ndarray:
    """Likeness of all pairs: that of their two most similar lines."""
    owner = [index for index, job in enumerate(jobs) for _ in job.lines]
    vectors = np.array(embedding.embed([line for job in jobs for line in job.lines]))
    lines = vectors @ vectors.T
    likeness = np.full((len(jobs), len(jobs)), -1.0)
    for one, row in zip(owner, lines, strict=True):
        np.maximum.at(likeness[one], owner, row)
    return likeness


def scores(likeness: np.ndarray, jobs: Sequence[Case]) -> tuple[float, float, list[tuple[float, bool]]]:
    """(share with the type among the five nearest, share with it first, (likeness, right) of the first)."""
    counts = Counter(job.failure_type for job in jobs)
    among = nearest = total = 0
    firsts = []
    for index, job in enumerate(jobs):
        order = [int(each) for each in np.argsort(-likeness[index]) if each != index][:5]
        right = [jobs[each].failure_type == job.failure_type for each in order]
        firsts.append((float(likeness[index][order[0]]), right[0]))
        if counts[job.failure_type] > 1:
            total += 1
            among += any(right)
            nearest += right[0]
    return among / total, nearest / total, firsts


def main(arguments: Sequence[str]) -> int:
    jobs = cases([Path(each) for each in arguments])
    counts = Counter(job.failure_type for job in jobs)
    asked = sum(count for count in counts.values() if count > 1)
    print("# Embeddings: is a job of the same failure type among the five nearest?\n")
    print(f"{len(jobs)} labelled jobs that failed, {asked} of them of a type that another one has too.\n")
    print("| embedding | compared | among five | nearest | nearest >= 0.8 | of these right | texts/s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in ("lexical", "minilm"):
        try:
            embedding = chosen_embedding(name)
        except EmbeddingFault as fault:
            print(f"not measured: {fault}", file=sys.stderr)
            continue
        for how in (whole, best_line):
            started = time.process_time()
            likeness = how(embedding, jobs)
            spent = time.process_time() - started
            texts = len(jobs) if how is whole else sum(len(job.lines) for job in jobs)
            among, nearest, firsts = scores(likeness, jobs)
            sure = [right for value, right in firsts if value >= 0.8]
            share = f"{sum(sure) / len(sure):.0%}" if sure else "-"
            print(
                f"| {embedding.name} | {how.__name__.replace('_', ' ')} | {among:.1%} | {nearest:.1%} "
                f"| {len(sure)} | {share} | {texts / max(spent, 1e-6):,.0f} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
