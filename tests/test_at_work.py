"""What somebody saw of a job: at work before any step, behind the words that it is done, or never gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


NOW = "$ date; docker ps; ls -l --time-style=long-iso\nSat Jan 31 08:{minute}:00 UTC 2026\n"
QUEUE = "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 61 gpu seg kim R {age} 1 g4\n"
BUILT = f"{clock(0)} lowering 14 graphs\n{clock(40)} optimising graph 3, this can take an hour\n"


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        # 08:20 by the clock: the cache was written a minute ago, and what builds is alive
        (
            NOW.format(minute=20) + "builder Up 20 minutes\n"
            "-rw-r--r-- 1 kim kim 91812 2026-01-31 08:19 graphs.cache\n",
            "none.running",
        ),
        (
            "kim@g4:~$ date\n31 Jan 08:03:00 GMT 2026\nkim@g4:~$ squeue -j 61\n" + QUEUE.format(age="3:10"),
            "none.running",
        ),
        # nothing alive; written long ago; the log itself is old
        (
            "$ date; ls -l --time-style=long-iso\nSat Jan 31 08:20:00 UTC 2026\n"
            "-rw-r--r-- 1 kim kim 91812 2026-01-31 08:19 graphs.cache\n",
            "unknown",
        ),
        (
            NOW.format(minute=40) + "builder Up 40 minutes\n"
            "-rw-r--r-- 1 kim kim 91812 2026-01-31 08:19 graphs.cache\n",
            "unknown",
        ),
        (
            NOW.format(minute=40) + "builder Up 40 minutes\n"
            "-rw-r--r-- 1 kim kim 812 2026-01-31 08:00 build.log\n"
            "-rw-r--r-- 1 kim kim 91812 2026-01-31 08:39 gpu.csv\n",
            "unknown",
        ),
    ],
)
def test_a_job_without_steps_that_somebody_saw_at_work_runs(tmp_path: Path, look: str, kind: str) -> None:
    assert judged(tmp_path, {"build.log": BUILT, "look.txt": look}).verdict.failure_type == kind


def test_who_waits_is_not_at_work(tmp_path: Path) -> None:
    log = BUILT + f"{clock(170)} waiting for the other hosts\n"
    look = "$ date; squeue -j 61\nSat Jan 31 08:03:00 UTC 2026\n" + QUEUE.format(age="3:10")
    assert judged(tmp_path, {"build.log": log, "look.txt": look}).verdict.failure_type != "none.running"


def scored(count: int) -> str:
    return "".join(f"{clock(250 + 20 * at)} scored page {at} of the test set\n" for at in range(count))


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        ("$ date; squeue -j 61\nSat Jan 31 08:11:00 UTC 2026\n" + QUEUE.format(age="11:10"), "none.running"),
        ("$ date; squeue -j 61\nSat Jan 31 13:11:00 UTC 2026\n" + QUEUE.format(age="5:11:10"), "hang.silent"),
        # the row of another job, and of none
        ("$ date; squeue\nSat Jan 31 13:11:00 UTC 2026\n" + QUEUE.format(age="40:10"), "none.completed"),
        ("$ date; squeue\nSat Jan 31 08:11:00 UTC 2026\n", "none.completed"),
    ],
)
def test_behind_the_words_that_training_is_done_a_look_tells_of_the_rest(
    tmp_path: Path, look: str, kind: str
) -> None:
    log = steps(100) + f"{clock(220)} Training done.\n" + scored(20)
    assert judged(tmp_path, {"seg.log": log, "look.txt": look}).verdict.failure_type == kind


@pytest.mark.parametrize(
    "cells", ["| {name:<8} | {value:<8} |", "| {name:<8} | {value:>8} |", "[{value:>4}/900] {name}"]
)
def test_a_table_that_is_padded_counts_steps_and_is_no_report_of_a_machine(
    tmp_path: Path, cells: str
) -> None:
    log = "UserWarning: this policy is slow on a GPU\n" + "".join(
        cells.format(name="round", value=at) + "\n" + "-" * 24 + "\n" for at in range(1, 140)
    )
    assert judged(tmp_path, {"policy.txt": log}).verdict.failure_type == "none.running"
