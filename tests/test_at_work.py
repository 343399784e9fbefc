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


PACK = f"{clock(0)} packing all shards\n{clock(3)} packer 1 of 1 up\n"
LISTED = "-rw-r--r-- 1 kim kim {size} Jan 31 07:10 a.idx"
TWICE = "kim@g4:~$ date; {ask}\nSat Jan 31 08:11:00 UTC 2026\n{first}\nkim@g4:~$ sleep 60; {ask}\n{second}\n"


@pytest.mark.parametrize(
    ("ask", "first", "second", "kind"),
    [
        ("ls out/*.idx | wc -l", "70", "73", "none.running"),
        ("du -sh out", "9.1G\tout", "9.4G\tout", "none.running"),
        ("ls -l out", LISTED.format(size=812), LISTED.format(size=990), "none.running"),
        ("ls out/*.idx | wc -l", "73", "73", "unknown"),
        ("du -sh tmp", "9.4G\ttmp", "9.1G\ttmp", "unknown"),
        ("cat gpu0/power", "91", "93", "unknown"),
        ("tail -n 1 pack.log", "packed 1130 pages", "packed 1190 pages", "none.running"),
        ("kubectl logs pack-0 --tail=1", "packed 1130 pages", "packed 1190 pages", "none.running"),
        ("tail -n 1 pack.log", "packed 1130 pages", "packed 1130 pages", "unknown"),
        ("tail -n 3 pack.log", "packed 1130 pages", "packed 1190 pages", "unknown"),
    ],
)  # fmt: skip
def test_what_had_grown_when_somebody_looked_again_is_written_still(
    tmp_path: Path, ask: str, first: str, second: str, kind: str
) -> None:
    files = {"pack.log": PACK, "look.txt": TWICE.format(ask=ask, first=first, second=second)}
    assert judged(tmp_path, files).verdict.failure_type == kind


@pytest.mark.parametrize(("cpu", "last", "kind"), [
    ("1130.5", "tracing and compiling the step", "none.running"),
    ("101.2", "tracing and compiling the step", "unknown"),
    ("1130.5", "all members are there", "unknown"),
])  # fmt: skip
def test_a_compiler_on_many_cores_is_at_work(tmp_path: Path, cpu: str, last: str, kind: str) -> None:
    look = (
        "$ date; top -b -n 1 | tail -n +7\nSat Jan 31 08:40:00 UTC 2026\n"
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        f"   4112 kim       20   0  212.1g  31.2g   2.1g R {cpu}  16.3  51:40.02 python3\n"
    )
    log = f"{clock(0)} mesh of 64 devices\n{clock(40)} {last}\n"
    assert judged(tmp_path, {"train.log": log, "look.txt": look}).verdict.failure_type == kind


@pytest.mark.parametrize(("asked_at", "kind"), [("08:02:42", "none.running"), ("08:52:42", "unknown")])
def test_a_look_behind_a_log_that_was_printed_tells_as_one_of_its_own(
    tmp_path: Path, asked_at: str, kind: str
) -> None:
    log = "".join(f"{clock(8.0 * at)} game {at * 77 % 91} ended with {at * 31 % 17}\n" for at in range(20))
    look = f"$ date; kubectl get pod play-0\nSat Jan 31 {asked_at} UTC 2026\nplay-0  1/1  Running  0  51m\n"
    files = {"seen.txt": f"$ kubectl logs play-0 --tail 20\n{log}{look}"}
    assert judged(tmp_path, files).verdict.failure_type == kind
