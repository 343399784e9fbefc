"""How the job stood when its logs end."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, findings, of_rank, reading, scene, steps

from logtriage.diagnose.offline import decide
from logtriage.localize.outcome import Outcome, judge
from logtriage.localize.progress import gather
from logtriage.model import SourceRole
from logtriage.pipeline import triage


def outcome(text: str) -> Outcome:
    here = scene(reading("train.log", text))
    return judge(here, gather(here))


def idle(at: float, count: int, every: float = 10.0) -> str:
    return "".join(f"{clock(at + every * number)} DEBUG heartbeat\n" for number in range(count))


@pytest.mark.parametrize(
    "word",
    [
        "[after training is done] datetime: 2026-01-31 08:10:00",
        "`Trainer.fit` stopped: `max_steps=20` reached.",
        "{'train_runtime': 41.2, 'train_samples_per_second': 7.7, 'train_loss': 2.1, 'epoch': 1.0}",
        "Training finished.",
    ],
)
def test_a_program_that_says_so_is_done(word: str) -> None:
    found = outcome(steps(20) + f"{clock(60)} INFO {word}\n")
    assert found.kind == "completed"
    assert found.line is not None
    assert word in found.line.text


def test_a_finished_epoch_amid_steps_is_not_the_end() -> None:
    text = steps(20) + f"{clock(41)} INFO Training finished.\n" + steps(20, first=21, at=50)
    assert outcome(text).kind == "running"


ROUND = (
    "{{'loss': 0.1, 'epoch': 0.{number}}}\n{{'train_runtime': 71.5, 'train_loss': 0.1, 'epoch': 1.0}}\n"
    "INFO: round {number} closed, next check in 60 s\nINFO: round {next} open\nFiltering 90 prompts\n"
)


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (" 12%|#  | 1/8 [00:31<03:30, 31.1s/it]\n", "running"),  # the next round
        ("100%|###| 8/8 [01:12<00:00, 9.1s/it]\n", "completed"),
        ("shard-3.safetensors:  12%|#  | 1/8 [00:31<03:30, 31.1s/it]\n", "completed"),
        ("", "completed"),
    ],
)
def test_a_trainer_that_is_called_once_a_round_is_done_once_a_round(end: str, kind: str) -> None:
    text = "".join(ROUND.format(number=number, next=number + 1) for number in range(4))
    assert outcome(text + end).kind == kind


def test_a_bar_that_is_closed_after_an_early_stop_is_no_new_one() -> None:
    bar = " 60%|###  | 6/10 [01:12<00:48, 12.1s/it]\n"
    said = "{'train_runtime': 72.5, 'train_loss': 0.1, 'epoch': 0.6}\n"
    assert outcome(steps(6) + bar + said + "a\nb\nc\n" + bar).kind == "completed"


def test_a_log_that_ends_among_steps_is_running() -> None:
    found = outcome(steps(20))
    assert found.kind == "running"
    assert found.line is not None
    assert "step 20 " in found.line.text


def test_a_log_cut_off_in_the_middle_of_a_line_is_running() -> None:
    found = outcome(steps(20) + f"{clock(40)} INFO st")
    assert found.kind == "running"


def test_a_long_silence_of_steps_is_a_hang() -> None:
    found = outcome(steps(20) + idle(60, 60))
    assert found.kind == "hang"
    assert found.silence == pytest.approx(60 + 590 - 38, abs=1)
    assert found.line is not None
    assert "step 20 " in found.line.text


@pytest.mark.parametrize("every", [2.0, 30.0])
def test_a_pause_as_long_as_an_evaluation_is_no_hang(every: float) -> None:
    text = steps(20, every=every) + idle(20 * every + 5, 3)
    assert outcome(text).kind == "running"


def test_slow_steps_make_a_longer_silence_normal() -> None:
    """Ten minutes without a step are a hang where steps take 2 s and none where they take 2 minutes."""
    assert outcome(steps(20, every=2) + idle(40, 60)).kind == "hang"
    assert outcome(steps(20, every=120) + idle(20 * 120, 60)).kind == "running"


def test_without_any_step_nothing_is_known() -> None:
    assert outcome(f"{clock(1)} INFO hello\n").kind == "unclear"
    assert outcome("").kind == "unclear"


def test_without_times_there_is_no_silence() -> None:
    assert outcome("step 1 loss 2.0\n" * 5 + "hello\n" * 500).kind == "running"


@pytest.mark.parametrize(
    ("text", "failure_type", "told"),
    [
        (steps(20) + f"{clock(41)} INFO Training finished.\n", "none.completed", "completed"),
        (steps(20), "none.running", "running"),
        (steps(20) + idle(60, 60), "hang.silent", "failed"),
        (f"{clock(1)} INFO hello\n", "unknown", "unknown"),
    ],
)
def test_a_verdict_without_an_error_says_how_the_job_stood(text: str, failure_type: str, told: str) -> None:
    decision = decide(findings(reading("train.log", text)))
    assert (decision.failure_type, decision.outcome) == (failure_type, told)
    assert decision.culprits.ranks == ()
    assert decision.evidence


def test_a_hang_says_what_to_collect() -> None:
    decision = decide(findings(reading("train.log", steps(20) + idle(60, 60))))
    assert any("py-spy" in each for each in decision.collect_next)


def test_polling_of_a_machine_is_no_sign_of_life() -> None:
    """A monitor that runs on does not make a job hang that ended among its steps."""
    here = scene(
        reading("train.log", steps(20)), reading("nvidia-smi.log", idle(60, 600), SourceRole.HARDWARE)
    )
    assert judge(here, gather(here)).kind == "running"


def test_one_rank_that_goes_on_is_progress() -> None:
    here = scene(of_rank(0, steps(20)), of_rank(1, steps(400)))
    assert judge(here, gather(here)).kind == "running"


@pytest.mark.parametrize("end", ["\r", "\n"])
def test_a_bar_that_is_drawn_anew_without_moving_shows_a_hang(end: str) -> None:
    def bar(count: int, seconds: int) -> str:
        passed = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"Epoch 2:  {count // 9}%|##   | {count}/900 [{passed}<33:20,  2.00s/it, loss=2.1]{end}"

    moving = "".join(bar(count, 2 * count) for count in range(1, 120))
    frozen = "".join(bar(119, 240 + 500 * again) for again in range(1, 9))
    evaluated = "".join(bar(119, 240 + 60 * again) for again in range(1, 9))
    assert outcome(moving + frozen).kind == "hang"
    assert outcome(moving).kind == "running"
    assert outcome(moving + evaluated).kind == "running"
    assert outcome(moving + frozen + bar(120, 4900) + bar(121, 4902)).kind == "running"


def test_a_bar_that_stands_still_before_the_first_step_shows_a_hang() -> None:
    def bar(count: int, passed: str) -> str:
        return f"Packing (num_proc=8):  {count // 8}%|###  | {count}/800 [{passed}<0:01:10, 9.9 examples/s]\n"

    moving = "".join(bar(count, f"0:00:{count // 10:02d}") for count in range(10, 500, 10))
    assert outcome(moving + "".join(bar(490, f"{hour}:10:00") for hour in range(1, 5))).kind == "hang"
    assert outcome(moving + "".join(bar(490, f"0:0{minute}:00") for minute in range(1, 5))).kind == "unclear"
    assert outcome(moving + bar(490, "2:00:00") + bar(490, "3:00:00") + bar(700, "3:00:09")).kind == "unclear"


def test_steps_without_a_time_are_dated_by_the_lines_above_them() -> None:
    def told(step: int) -> str:
        reports = "".join(f"completed step: {step}, seconds: 2.{rank}, loss: 2.1\n" for rank in range(4))
        return f"{clock(2 * step)} [loader] sample {7 * step} seen\n{reports}"

    text = "".join(told(step) for step in range(1, 40))
    assert outcome(text).kind == "running"
    ended = outcome(text + idle(90, 30))
    assert (ended.kind, ended.line and "step: 39" in ended.line.text) == ("hang", True)


def test_a_status_of_zero_right_below_a_traceback_is_that_of_a_pipe(tmp_path: Path) -> None:
    failed = 'Traceback (most recent call last):\n  File "/srv/fit.py", line 3, in <module>\n    main()\n{}\n'
    ended = "[2026-03-01 06:21:35] exit code 0\n"
    (tmp_path / "job.out").write_text(failed.format("ValueError: rank 3 has no peer") + ended)
    assert triage(tmp_path, offline=True, workers=1).verdict.failure_type == "code.value"
    steps = "".join(f"2026-03-01 06:20:{at:02d} INFO step {at} loss 1.2\n" for at in range(20))
    (tmp_path / "job.out").write_text(failed.format("ValueError: no cache yet") + steps + ended)
    assert triage(tmp_path, offline=True, workers=1).verdict.failure_type == "none.completed"
