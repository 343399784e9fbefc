"""Judge cases again, without a model, in several processes, and score each verdict."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from logtriage import pipeline
from logtriage.evaluation.case import Case
from logtriage.evaluation.score import Score, scored, unanswered
from logtriage.forks import leave_interrupts


def scores(
    cases: Sequence[Case], *, workers: int | None = None, progress: Callable[[int, int], None] | None = None
) -> list[Score]:
    """The scores in the order of the cases; what a job does to its process is the score of that job alone.

    `workers` processes (by default one a core) judge a job each; `progress` is called with (done, in all).
    """
    count = max(1, min(workers or os.cpu_count() or 1, len(cases)))
    found: dict[int, Score] = {}

    def told(number: int, score: Score) -> None:
        found[number] = score
        if progress is not None:
            progress(len(found), len(cases))

    broken: list[int] = []
    pool = ProcessPoolExecutor(count, initializer=leave_interrupts)
    try:
        futures = {pool.submit(score_of, case): number for number, case in enumerate(cases)}
        for future in as_completed(futures):
            score = _result(future)
            if score is None:
                broken.append(futures[future])
            else:
                told(futures[future], score)
    finally:
        pool.shutdown(cancel_futures=True)
    for number in broken:  # one of them ended the processes; each is judged again by itself
        told(number, _alone(cases[number]))
    return [found[number] for number in range(len(cases))]


def score_of(case: Case) -> Score:
    """One case judged and scored; whatever goes wrong is its score."""
    began = time.perf_counter()
    try:
        verdict = pipeline.triage(list(case.paths), offline=True, workers=1, learned=case.learned)
        return scored(case, verdict, round(time.perf_counter() - began, 3))
    except Exception as fault:
        return unanswered(case, f"{type(fault).__name__}: {' '.join(str(fault).split())[:200]}")


def _result(future: Future[Score]) -> Score | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _alone(case: Case) -> Score:
    with ProcessPoolExecutor(1, initializer=leave_interrupts) as pool:
        score = _result(pool.submit(score_of, case))
    return score or unanswered(case, "the process that judged it was ended")
