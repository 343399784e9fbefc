"""Warnings in jobs that run on are no failure; errors at the end outweigh the silence before them."""

from __future__ import annotations

from pathlib import Path

import pytest
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.report.document import VerdictBody

DAY = "2026-03-03"
STEP = f"{DAY} 04:00:41,120 INFO step 41 | loss 8.100"


def verdict(folder: Path, *lines: str | list[str], **files: str) -> VerdictBody:
    more = {f"{name}.log": words for name, words in files.items()}
    job = written(folder, {"rank0.log": text(steps(DAY, 4, 40), *lines), **more})
    return triage(job, offline=True).verdict


@pytest.mark.parametrize(
    "words",
    [
        "shard 17 is corrupted: checksum mismatch",
        "[Errno 5] Input/output error: '/mnt/x/part-7'",
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "checkpoint file is corrupt: invalid header, unexpected EOF",
    ],
)
def test_a_warning_and_then_a_step(words: str, tmp_path: Path) -> None:
    warned = f"{DAY} 04:00:40,500 WARNING reader: {words}"
    assert verdict(tmp_path / "a", warned, STEP).failure_type == "none.running"
    told_as_error = warned.replace("WARNING", "ERROR")
    assert verdict(tmp_path / "b", told_as_error, STEP).failure_type not in ("none.running", "unknown")
    launcher = (
        "E0303 04:00:42.000000 20 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) "
        "local_rank: 0 (pid: 31) of binary: /usr/bin/python3\n"
    )
    assert verdict(tmp_path / "c", warned, STEP, torchrun=launcher).failure_type != "none.running"


def test_a_warning_of_what_kills_stays(tmp_path: Path) -> None:
    ended = "*** JOB 51 ON n7 CANCELLED AT 2026-03-03T04:00:40 DUE TO TIME LIMIT ***"
    warned = f"{DAY} 04:00:40,500 WARNING slurmstepd: error: {ended}"
    assert verdict(tmp_path, warned, STEP).failure_type == "scheduler.time_limit"


@pytest.mark.parametrize("minute", [1, 2, 10, 50])
def test_an_error_after_silence_is_not_outvoted_by_it(minute: int, tmp_path: Path) -> None:
    errors = [
        f"{DAY} 04:{minute:02}:46,000 ERROR quorumd: lattice keeper gave tessera 4411 back unsigned",
        f"{DAY} 04:{minute:02}:47,000 ERROR quorumd: leaving",
    ]
    body = verdict(tmp_path, errors)
    assert body.failure_type == "unknown"
    cited = [each.line for each in body.evidence]
    assert 41 in cited and len(cited) == len(set(cited))


def test_an_error_that_tells_of_the_silence_leaves_a_hang(tmp_path: Path) -> None:
    error = f"{DAY} 04:20:00,000 ERROR lattice sentinel: no steps for 1160 s on this worker"
    assert verdict(tmp_path, error).failure_type == "hang.silent"


def test_a_log_that_beats_on_after_an_error_is_a_hang(tmp_path: Path) -> None:
    error = f"{DAY} 04:01:30,000 ERROR quorumd: lattice keeper gave tessera 4411 back unsigned"
    beats = [f"{DAY} 04:{minute:02}:00,000 INFO heartbeat ok" for minute in range(2, 40)]
    assert verdict(tmp_path, error, beats).failure_type == "hang.silent"
