"""Spikes that a run left behind, and ends that others brought about: who is not to blame, and who is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def losses(count: int, *, first: int = 1, loss: float = 2.5, rise: float = 0.0) -> str:
    return "".join(
        f"{clock(2.0 * step)} INFO step {step} loss: {loss + rise * number + 0.01 * (step % 7):.3f}\n"
        for number, step in enumerate(range(first, first + count))
    )


SPIKES = (
    "WARNING:guard:Unexpected result tensor(9.1) on rank 3 at iteration #40 (message='Spiky loss')\n",
    f"{clock(80)} WARNING loss spike at step 40: 8.70 (running mean 2.53)\n",
)


@pytest.mark.parametrize("spike", SPIKES)
def test_a_spike_after_which_the_loss_came_back_is_none(tmp_path: Path, spike: str) -> None:
    verdict = judged(tmp_path, {"train.out": losses(40) + spike + losses(60, first=41)})
    assert verdict.verdict.failure_type == "none.running"


@pytest.mark.parametrize("spike", SPIKES)
def test_a_spike_after_which_the_loss_stayed_high_counts(tmp_path: Path, spike: str) -> None:
    verdict = judged(tmp_path, {"train.out": losses(40) + spike + losses(60, first=41, loss=7.9)})
    assert verdict.verdict.failure_type == "numerics.divergence"


LIMIT = "slurmstepd: error: *** JOB 5150 ON cn-2 CANCELLED AT 2026-01-31T08:03:20 DUE TO TIME LIMIT ***\n"
ENDS = (
    "srun: error: cn-4: task 2: Exited with exit code 1\n",
    "srun: error: cn-3: tasks 1-2: Exited with exit code 3\n",
)


@pytest.mark.parametrize("end", ENDS)
def test_a_task_that_fails_once_the_limit_ended_the_job_did_not_end_it(tmp_path: Path, end: str) -> None:
    verdict = judged(tmp_path, {"slurm-5150.out": losses(99) + LIMIT + end})
    assert verdict.verdict.failure_type == "scheduler.time_limit"
    assert verdict.verdict.culprits.ranks == ()


STEP_OVER = (
    "srun: error: n-11: task 2: Exited with exit code 1\n"
    "slurmstepd-n-10: error: *** STEP 77.0 ON n-10 CANCELLED AT 2026-01-31T08:00:40 ***\n"
    "srun: error: n-10: task 1: Terminated\nsrun: error: n-9: task 0: Terminated\n"
    "srun: error: n-12: task 3: Terminated\n"
)
REFUSED = (
    "slurmstepd-n-11: error: pyxis: failed to create container filesystem\n"
    "slurmstepd-n-11: error: pyxis: couldn't start container\n",
    "slurmstepd-n-11: error: execve(): /opt/env/bin/python: No such file or directory\n" * 5,
)


@pytest.mark.parametrize("refused", REFUSED)
def test_slurms_daemon_speaks_for_the_host_in_its_name(tmp_path: Path, refused: str) -> None:
    verdict = judged(tmp_path, {"slurm-77.out": refused + STEP_OVER})
    assert verdict.verdict.failure_type == "scheduler.launch"
    told = verdict.verdict.culprits
    assert (told.ranks, told.hosts) == ((2,), ("n-11",))
