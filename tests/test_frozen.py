"""Logs that end among healthy steps, of jobs that somebody or something saw alive long after: silent hangs.

And those that only look like it: a look right away, a clock in another zone, a node that others use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


RUN = steps(60, every=10.0)  # 08:00:00 to 08:09:50 on 2026-01-31
SMI = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"


def polled(busy: int, first: str = "2026/01/31 12", rows: int = 8) -> str:
    return SMI + "".join(f"{first}:{5 * n:02d}:00, 0, {busy} %, 60112 MiB, 310.0 W\n" for n in range(rows))


HANGING: dict[str, dict[str, str]] = {
    "a remark with two clocks": {
        "out.log": RUN + "# last modified 2026-01-31 08:09:50, still running at 2026-01-31 11:17\n"
    },
    "date behind the log": {"out.log": RUN + "$ date\nSat Jan 31 13:41:07 UTC 2026\n"},
    "date with half a day": {"out.log": RUN + "Sat Jan 31 01:41:07 PM UTC 2026\n"},
    "checked by a person": {"out.log": RUN + ">>> checked at 2026-01-31 15:22:41: all GPUs busy\n"},
    "ls and date": {
        "out.log": RUN,
        "notes.txt": "$ date\nSat Jan 31 12:26:31 UTC 2026\n$ ls -l\n"
        "-rw-r--r-- 1 ann lab 9120 Jan 31 08:09 out.log\n",
    },
    "ls over the turn of the year": {
        "out.log": RUN.replace("2026-01-31", "2025-12-31"),
        "notes.txt": "Thu Jan  1 05:26:31 UTC 2026\n-rw-r--r-- 1 ann lab 9120 Dec 31 08:09 out.log\n",
    },
    "tail and date": {
        "out.log": RUN + "evaluation is done, on with training\n",
        "look.txt": "$ date; tail -1 out.log\nSat Jan 31 11:26:31 UTC 2026\n"
        "evaluation is done, on with training\n",
    },
    "tail behind a remark": {
        "out.log": RUN + "saved the state of step 60\n",
        "remark.md": "checked at 2026-01-31 14:01:22, the end of it is\n  saved the state of step 60\n",
    },
    "squeue": {
        "out.log": RUN,
        "squeue.txt": "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
        "     91 gpu sft ann R 5:12:31 2 cn[1-2]\n",
    },
    "ps": {
        "out.log": RUN,
        "ps.txt": "    PID     ELAPSED STAT CMD\n   4111    07:10:12 Rl   python train.py\n",
    },
    "a watcher that counts hours": {
        "out.log": RUN,
        "watch.txt": "".join(
            f"== {n + 9:02d}:00 == log unchanged for {n}h; 4 procs alive, util 100 %\n" for n in range(1, 6)
        ),
    },
    "a watcher that counts minutes": {
        "out.log": RUN,
        "watch.txt": "out.log: no new output for 250 minutes, job is running\n",
    },
    "polled GPUs": {"out.log": RUN, "gpu_poll.csv": polled(100)},
    "polled GPUs without a heading": {
        "out.log": RUN, "smi.csv": "\n".join(polled(99).splitlines()[1:]) + "\n"
    },
    "metrics that go on": {
        "out.log": RUN
        + "".join(f"2026-01-31 {9 + n // 6:02d}:{n % 6 * 10:02d}:00,000 DEBUG heartbeat\n" for n in range(30))
    },
}  # fmt: skip


@pytest.mark.parametrize("files", HANGING.values(), ids=HANGING)
def test_whoever_goes_on_shows_that_the_job_stands(tmp_path: Path, files: Mapping[str, str]) -> None:
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "hang.silent"
    assert verdict.verdict.evidence[0].text.split(" INFO ")[-1].startswith("step 60 ")


RUNNING: dict[str, dict[str, str]] = {
    "a look right away": {"out.log": RUN + "Sat Jan 31 08:10:12 UTC 2026\n"},
    "a zone of its own": {"out.log": RUN + "Sat Jan 31 10:09:58 CET 2026\n"},
    "a time to come": {"out.log": RUN + "next evaluation is due at 2026-01-31 14:00:00\n"},
    "an ls of the same minute": {
        "out.log": RUN,
        "notes.txt": "Sat Jan 31 08:10:12 UTC 2026\n-rw-r--r-- 1 ann lab 9120 Jan 31 08:09 out.log\n",
    },
    "squeue while it steps": {
        "out.log": RUN, "squeue.txt": "  JOBID NAME USER ST TIME NODES\n   91 sft ann R 14:31 2\n",
    },
    "a watcher that is not worried yet": {
        "out.log": RUN, "watch.txt": "08:10 log unchanged for 40 s; 4 procs alive, util 100 %\n",
    },
    "a watcher that looks at another thing": {
        "out.log": RUN, "watch.txt": "disk usage unchanged for 9h\n",
    },
    "GPUs that rest": {"out.log": RUN, "gpu_poll.csv": polled(0)},
    "GPUs polled beside the steps": {"out.log": RUN, "gpu_poll.csv": polled(98, "2026/01/31 08", rows=3)},
}  # fmt: skip


@pytest.mark.parametrize("files", RUNNING.values(), ids=RUNNING)
def test_a_job_that_steps_to_the_end_of_its_log_runs(tmp_path: Path, files: Mapping[str, str]) -> None:
    assert judged(tmp_path, files).verdict.failure_type == "none.running"


def undated(at: int, last: int) -> str:
    head = f"process {at} of 4 is up\n"
    return head + "".join(f"finished step {n} in 4.1 s, loss 2.{n}\n" for n in range(1, last + 1))


@pytest.mark.parametrize(("clock", "hangs"), [("13:41:07", True), ("08:21:07", False)])
def test_a_line_that_somebody_quotes_with_its_time_dates_a_log(
    tmp_path: Path, clock: str, hangs: bool
) -> None:
    look = (
        f"$ date; kubectl logs mesh-2 --tail=1 --timestamps\nSat Jan 31 {clock} UTC 2026\n"
        "2026-01-31T08:20:11.400Z finished step 57 in 4.1 s, loss 2.5\n"
    )
    files = {f"mesh-{at}.log": undated(at, 57 if at == 2 else 58) for at in range(4)}
    body = judged(tmp_path, {**files, "look.txt": look}).verdict
    assert (body.failure_type == "hang.silent") is hangs
    assert not hangs or body.culprits.ranks == (2,)


def start(rank: int, last: str = "joined the group of 4") -> str:
    return (
        f"2026-01-31 08:00:0{rank},000 {7100 + rank} INFO opened device {rank}\n"
        f"2026-01-31 08:00:1{rank},000 {7100 + rank} INFO {last}\n"
    )


RANKS = {f"worker_{rank}.log": start(rank) for rank in range(4)}
IDLE = (
    "$ date\nSat Jan 31 08:24:41 UTC 2026\n"
    "$ nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv\n" + ("0 %, 702 MiB\n" * 4)
)
LISTED = "[ann@cn-3 ~]$ date\nSat Jan 31 11:24:41 UTC 2026\n$ ps -eo pid,cmd\n   7102 python fit.py\n"


@pytest.mark.parametrize(
    ("files", "hangs"),
    [
        ({**RANKS, "look.txt": IDLE}, True),
        ({**RANKS, "look.txt": LISTED}, True),
        ({**RANKS, "look.txt": IDLE.replace("08:24", "08:06")}, False),  # it may still be compiling
        ({**RANKS, "look.txt": IDLE.replace("0 %, 702", "97 %, 702", 1)}, False),
        ({**RANKS, "look.txt": LISTED.replace("7102", "911")}, False),  # it may have ended
        ({**RANKS, "worker_2.log": start(2, "reads shard 7"), "look.txt": IDLE}, False),
    ],
)  # fmt: skip
def test_all_ranks_that_stand_at_one_point_of_their_start_hang(
    tmp_path: Path, files: Mapping[str, str], hangs: bool
) -> None:
    body = judged(tmp_path, files).verdict
    assert (body.failure_type == "hang.silent") is hangs
    assert not hangs or "joined the group" in body.evidence[0].text
