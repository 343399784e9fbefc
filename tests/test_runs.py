"""Runs of one job in files of their own: the last one's end is the job's, whatever ended those before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


LIMIT = "slurmstepd: error: *** JOB 71_{n} ON cn-12 CANCELLED AT 2026-01-31T08:30:00 DUE TO TIME LIMIT ***\n"
CUT_OFF = behind(
    "[rank0]: ",
    traceback("RuntimeError: PytorchStreamReader failed reading zip archive: not a ZIP archive"),
)


def every_tenth(first: int, at: float) -> str:
    return "".join(f"{clock(at + 20 * n)} INFO step {first + 10 * n} loss 2.1\n" for n in range(40))


@pytest.mark.parametrize(
    "begin",
    ["INFO resuming from /c/last.pt\n", "INFO Loading checkpoint /c/last.pt\n", "INFO t.py --auto-resume\n"],
)
def test_the_last_task_of_an_array_fails_by_itself(tmp_path: Path, begin: str) -> None:
    files = {
        "mae_71_1.log": every_tenth(10, 0) + LIMIT.format(n=1),
        "mae_71_2.log": f"{clock(3600)} {begin}" + every_tenth(410, 3605) + LIMIT.format(n=2),
        "mae_71_3.log": f"{clock(7200)} {begin}" + CUT_OFF,
    }
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "checkpoint.corrupt"
    assert verdict.verdict.evidence[0].file == "mae_71_3.log"


def test_files_of_one_time_are_of_one_run(tmp_path: Path) -> None:
    files = {
        "node_1.log": steps(60) + traceback("torch.OutOfMemoryError: CUDA out of memory"),
        "node_2.log": f"{clock(0)} INFO loading checkpoint /ckpt/last.pt\n{clock(90)} INFO ready\n",
    }
    assert judged(tmp_path, files).verdict.failure_type == "cuda.out_of_memory"
