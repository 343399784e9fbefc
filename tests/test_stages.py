"""In which stage and iteration a job failed, and what that cost."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console
from scenes import clock, findings, judged, of_rank, steps, traceback

from logtriage.diagnose.course import stage_and_loss
from logtriage.diagnose.offline import decide
from logtriage.report.document import Lost, StageOut
from logtriage.report.html import page
from logtriage.report.terminal import render

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FULL = "OSError: [Errno 28] No space left on device: '/local/out/rank_1.pt'"


def told(*texts: str, ranks: int = 2) -> tuple[StageOut | None, Lost | None]:
    found = findings(*(of_rank(rank, text) for rank, text in enumerate(texts)))
    return stage_and_loss(found, decide(found), ranks)


@pytest.mark.parametrize(
    ("before", "error", "stage", "iteration"),
    [
        ("INFO hello\n", OOM, "start-up", None),
        (f"{clock(1)} INFO loading distributed checkpoint from /c at iteration 4\n", OOM, "loading", None),
        (f"{clock(1)} INFO Compiling the model with torch.compile\n", OOM, "compiling", None),
        (steps(30), OOM, "iterating", 30),
        (steps(30) + f"{clock(61)} INFO starting validation\n", OOM, "evaluating", 30),
        (steps(30) + f"{clock(61)} INFO saving checkpoint at iteration 30 to /c\n", FULL, "saving", 30),
        (
            steps(30)
            + f"{clock(61)} INFO saving checkpoint at iteration 30 to /c\n"
            + f"{clock(63)} INFO successfully saved checkpoint from iteration 30 to /c\n"
            + steps(5, first=31, at=64),
            OOM,
            "iterating",
            35,
        ),
        (
            steps(30)
            + f"{clock(61)} INFO Saving the checkpoint (or staging if async is enabled).\n"
            + f"{clock(63)} INFO Finished saving the checkpoint (or staging if async is enabled) in 2 s.\n",
            OOM,
            "iterating",
            30,
        ),
    ],
)
def test_the_stage_is_the_one_whose_line_came_last(
    before: str, error: str, stage: str, iteration: int | None
) -> None:
    at, _ = told(before, before + traceback(error))
    assert at is not None
    assert (at.name, at.iteration) == (stage, iteration)


@pytest.mark.parametrize(
    ("function", "stage"),
    [("save_checkpoint", "saving"), ("load_checkpoint", "loading"), ("evaluate", "evaluating")],
)
def test_where_it_was_raised_says_more_than_the_line_before(function: str, stage: str) -> None:
    at, _ = told(steps(30), steps(30) + traceback(FULL, function))
    assert at is not None and at.name == stage


def test_who_asks_for_samples_is_not_saving_whatever_it_said_before() -> None:
    saving = f"{clock(61)} INFO Saving the checkpoint (or staging if async is enabled).\n"
    module = "/site-packages/torch/utils/data/dataloader.py"
    raised = traceback("zlib.error: Error -3 while decompressing data", "__next__", module)
    at, _ = told(steps(30), steps(30) + saving + raised)
    assert at is not None and at.name == "iterating"


def test_other_ranks_tell_the_stage_of_a_rank_that_tells_none() -> None:
    quiet = f"{clock(0)} INFO loading weights file model.safetensors\n"
    at, _ = told(steps(30), quiet + f"{clock(59.5)} ERROR {OOM}\n")
    assert at is not None
    assert (at.name, at.iteration) == ("iterating", 30)


def test_what_is_lost_is_counted_from_the_last_checkpoint_before_the_failure() -> None:
    saved = f"{clock(41)} INFO successfully saved checkpoint from iteration 20 to /c\n"
    text = steps(20) + saved + steps(10, first=21, at=42) + f"{clock(241)} INFO bye\n"
    _, lost = told(text, steps(30) + f"{clock(61)} ERROR {OOM}\n", ranks=9)
    assert lost is not None
    assert (lost.since, lost.iterations, lost.last_good_iteration) == ("checkpoint", 10, 30)
    assert lost.seconds == pytest.approx(200.0)
    assert lost.gpu_hours == pytest.approx(0.5)
    assert lost.idle_seconds == pytest.approx(181.0)


def test_without_a_checkpoint_all_is_lost() -> None:
    _, lost = told(steps(30), steps(30) + traceback(OOM))
    assert lost is not None
    assert (lost.since, lost.iterations) == ("start", 30)


@pytest.mark.parametrize(
    ("reported", "lost"),
    [(range(20, 101, 20), 100), (range(1220, 1301, 20), 100), (range(3), 3), ((40,), None)],
)
def test_what_is_lost_without_a_checkpoint_is_what_was_made_in_this_run(
    reported: Iterable[int], lost: int | None
) -> None:
    """Reports are of every n-th step; of a run that was resumed the first is not of its first."""
    text = "".join(steps(1, first=step, at=step) for step in reported)
    _, found = told(text + f"{clock(2000)} ERROR {OOM}\n")
    assert found is not None and found.iterations == lost


def test_a_job_that_went_well_has_lost_nothing(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"rank0.log": steps(30) + f"{clock(70)} INFO training completed\n"})
    assert verdict.verdict.stage is None and verdict.verdict.lost is None


def test_a_launcher_without_dates_does_not_move_the_failure_back(tmp_path: Path) -> None:
    kernel = (
        "[Sat Jan 31 08:01:01 2026] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
        "[Sat Jan 31 08:01:01 2026] Memory cgroup out of memory: Killed process 4242 (python) total-vm:99kB, "
        "anon-rss:99kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:9kB oom_score_adj:0\n"
    )
    launcher = (
        f"{clock(1)} INFO launching 2 processes\n"
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM "
        "Killed.\n"
    )
    files = {"rank0.log": steps(31), "rank1.log": steps(31), "node-1.dmesg": kernel, "slurm-7.out": launcher}
    at = judged(tmp_path, files).verdict.stage
    assert at is not None
    assert (at.name, at.iteration) == ("iterating", 31)


def test_terminal_and_page_say_when_and_what_is_lost(tmp_path: Path) -> None:
    saved = f"{clock(41)} INFO successfully saved checkpoint from iteration 20 to /c\n"
    text = steps(20) + saved + steps(10, first=21, at=42) + f"{clock(61)} ERROR {OOM}\n"
    verdict = judged(tmp_path, {"rank0.log": text})
    screen = io.StringIO()
    render(verdict, Console(file=screen, width=100))
    for shown in (screen.getvalue(), page(verdict)):
        assert "while iterating, in or after iteration 30" in shown
        assert "10 iterations, 20 s" in shown


@pytest.mark.parametrize(("pause", "stage"), [(0.0, "iterating"), (60.0, "saving")])
def test_a_save_whose_end_is_not_told_is_a_stage_where_steps_waited_for_it(pause: float, stage: str) -> None:
    text, at = "", 0.0
    for step in range(1, 41):
        text += f"{clock(at)} INFO step {step} loss 2.1\n"
        if step % 10 == 0:
            text += f"{clock(at + 0.2)} INFO Saving checkpoint at /c/{step}\n"
            at += pause
        at += 2.0
    text += f"{clock(at - 1.0)} DEBUG the queue is short\n"
    found, _ = told(text, text + traceback("KeyError: 'tokens'"))
    assert found is not None and (found.name, found.iteration) == (stage, 40)
