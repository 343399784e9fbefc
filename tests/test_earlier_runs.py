"""A folder that holds several runs is triaged for its last one; the parts of one run stay together."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from logtriage.pipeline import triage
from logtriage.report.document import Verdict

MORNING = datetime(2026, 3, 4, 9, 0, 0)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 79.1 GiB"
KEY = "KeyError: 'input_ids'"


def a_run(path: Path, began: datetime, error: str | None, steps: int = 40, rank: int | None = None) -> None:
    """One file of a run: a step every five seconds, then an error if there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    label = "" if rank is None else f"[rank{rank}]: "
    lines = [f"{began:%Y-%m-%d %H:%M:%S} INFO {label}starting training with 4 workers"]
    for step in range(1, steps + 1):
        now = began + timedelta(seconds=5 * step)
        lines.append(f"{now:%Y-%m-%d %H:%M:%S} INFO {label}step {step}/400 loss {3 - step / 100:.3f}")
    if error is not None:
        now += timedelta(seconds=1)
        lines += [
            f"{now:%Y-%m-%d %H:%M:%S} ERROR {label}training failed",
            f"{label}Traceback (most recent call last):",
            f'{label}  File "/srv/app/train.py", line 88, in <module>',
            f"{label}    main()",
            f"{label}{error}",
        ]
    path.write_text("\n".join(lines) + "\n")


def verdict(folder: Path) -> Verdict:
    return triage(folder, offline=True, workers=1)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("run1/train.log", "run2/train.log"),
        ("2026-03-04/09-00-00/main.log", "2026-03-04/12-30-00/main.log"),
        ("2026-03-04/09-00-00/main.log", "2026-03-05/08-10-00/main.log"),
        ("4811/stdout.log", "4812/stdout.log"),
        ("slurm-4811.out", "slurm-4812.out"),
        ("train_20260304_0900.log", "train_20260304_1230.log"),
        ("wandb/run-20260304_090000-abcd1234/output.log", "wandb/run-20260304_123000-efgh5678/output.log"),
        ("baseline/console.log", "longer-context/console.log"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("first", "second", "expected"), [(OOM, KEY, "code.key"), (KEY, OOM, "cuda.out_of_memory")]
)
def test_the_last_of_several_runs_is_the_one_that_is_asked_about(
    tmp_path: Path, earlier: str, later: str, first: str, second: str, expected: str
) -> None:
    hours = 23 if "2026-03-05" in later else 3.5
    a_run(tmp_path / earlier, MORNING, first)
    a_run(tmp_path / later, MORNING + timedelta(hours=hours), second)
    found = verdict(tmp_path)
    assert found.verdict.failure_type == expected
    assert {each.file for each in found.verdict.evidence} == {later}
    (told,) = [note for note in found.mining.left_out if "another run" in note]
    assert told.split(" is another run")[0] in earlier and "2026-03-04T09:03:21" in told


def test_folders_that_share_nothing_are_runs_if_a_day_lies_between_them(tmp_path: Path) -> None:
    a_run(tmp_path / "vision" / "finetune.out", MORNING, OOM)
    a_run(tmp_path / "speech" / "console.txt", MORNING + timedelta(days=3), KEY)
    found = verdict(tmp_path)
    assert found.verdict.failure_type == "code.key"
    assert any(note.startswith("vision is another run") for note in found.mining.left_out)
    a_run(tmp_path / "vision" / "finetune.out", MORNING + timedelta(days=2, hours=14), OOM)
    assert not [note for note in verdict(tmp_path).mining.left_out if "another run" in note]


def test_a_run_without_times_does_not_keep_earlier_ones_in_the_verdict(tmp_path: Path) -> None:
    a_run(tmp_path / "run1" / "train.log", MORNING, OOM)
    a_run(tmp_path / "run2" / "train.log", MORNING + timedelta(hours=2), KEY)
    (tmp_path / "run3").mkdir()
    (tmp_path / "run3" / "train.log").write_text("".join(f"epoch {at} of 9\n" for at in range(5)))
    found = verdict(tmp_path)
    assert found.verdict.failure_type == "code.key"
    assert [note.split(" is")[0] for note in found.mining.left_out if "another run" in note] == ["run1"]


def test_a_run_that_goes_well_after_one_that_failed_has_not_failed(tmp_path: Path) -> None:
    a_run(tmp_path / "run_1" / "train.log", MORNING, OOM)
    a_run(tmp_path / "run_2" / "train.log", MORNING + timedelta(hours=1), None)
    assert verdict(tmp_path).verdict.failure_type == "none.running"


@pytest.mark.parametrize(
    "files",
    [
        ("node-1/train.log", "node-2/train.log"),
        ("rank_0/stderr.log", "rank_1/stderr.log"),
        ("attempt_0/0/stderr.log", "attempt_1/0/stderr.log"),
        ("10.0.0.4/train.log", "10.0.0.5/train.log"),
        ("worker_0.log", "worker_1.log"),
        ("stage1/train.log", "stage2/train.log"),
        ("n123/train.log", "n124/train.log"),
        ("037/train.log", "038/train.log"),
        ("tg-a-3007.log", "tg-a-3016.log"),
        ("logs/train.log", "notes/said.log"),
    ],
)
def test_parts_of_one_run_stay_together_whenever_they_were_written(
    tmp_path: Path, files: tuple[str, str]
) -> None:
    for number, file in enumerate(files):
        a_run(tmp_path / file, MORNING + timedelta(hours=number), OOM if number == 0 else None)
    assert not [note for note in verdict(tmp_path).mining.left_out if "another run" in note]


def test_runs_at_the_same_time_are_one(tmp_path: Path) -> None:
    a_run(tmp_path / "job-4811" / "train.log", MORNING, None)
    a_run(tmp_path / "job-4812" / "train.log", MORNING + timedelta(seconds=60), OOM)
    assert not [note for note in verdict(tmp_path).mining.left_out if "another run" in note]


def test_a_log_that_is_cut_each_day_is_one_run(tmp_path: Path) -> None:
    a_run(tmp_path / "alpha" / "train.log", MORNING, None)
    a_run(tmp_path / "beta" / "train.log", MORNING + timedelta(seconds=230), OOM)
    assert not [note for note in verdict(tmp_path).mining.left_out if "another run" in note]


def test_a_checkpoint_that_an_earlier_run_could_not_store_is_why_the_last_one_died(tmp_path: Path) -> None:
    a_run(
        tmp_path / "run1" / "train.log",
        MORNING,
        "OSError: [Errno 28] No space left on device: '/ckpt/step_40.pt'",
    )
    broken = (
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory "
        "(/ckpt/step_40.pt)"
    )
    a_run(tmp_path / "run2" / "train.log", MORNING + timedelta(hours=1), broken, steps=1)
    assert verdict(tmp_path).verdict.failure_type == "host.disk_full"


def test_the_ranks_of_the_last_run_are_told_by_its_own_files(tmp_path: Path) -> None:
    for run, hours in (("4811", 0), ("4812", 2)):
        for rank in range(4):
            error = OOM if (run, rank) == ("4812", 2) else KEY if (run, rank) == ("4811", 1) else None
            began = MORNING + timedelta(hours=hours)
            a_run(tmp_path / run / f"rank_{rank}.log", began, error, rank=rank)
    found = verdict(tmp_path).verdict
    assert (found.failure_type, found.culprits.ranks) == ("cuda.out_of_memory", (2,))
