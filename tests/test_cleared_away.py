"""A time limit, or a person, that ends what had stood still for hours is not why the job failed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from logtriage.pipeline import triage

BEGAN = datetime(2026, 5, 4, 7, 30, 0)
LIMIT = "slurmstepd: error: *** JOB 5521 ON c31 CANCELLED AT {at:%Y-%m-%dT%H:%M:%S} DUE TO TIME LIMIT ***"
BY_HAND = "slurmstepd: error: *** JOB 5521 ON c31 CANCELLED AT {at:%Y-%m-%dT%H:%M:%S} ***"
SAVES = 40  # after so many steps


def found(tmp_path: Path, ended: str, idle: timedelta, said: str = "", save: float = 0.0) -> tuple[str, bool]:
    """The type and whether the last step is cited, of a job of 90 steps of 8 s that is ended `idle` later."""
    now, lines = BEGAN, []
    for step in range(1, 91):
        now += timedelta(seconds=8 + (save if step % SAVES == 0 else 0))
        lines.append(f"{now:%Y-%m-%d %H:%M:%S} INFO update {step} of 4000 nll {3 - step / 99:.4f}")
    last = lines[-1]
    if said:
        lines.append(f"{now + timedelta(seconds=3):%Y-%m-%d %H:%M:%S} INFO {said}")
    (tmp_path / "slurm-5521.out").write_text("\n".join([*lines, ended.format(at=now + idle), ""]))
    verdict = triage(tmp_path, offline=True, workers=1).verdict
    return verdict.failure_type, any(each.text == last for each in verdict.evidence)


@pytest.mark.parametrize("ended", [LIMIT, BY_HAND])
def test_what_stood_still_for_hours_hung(tmp_path: Path, ended: str) -> None:
    assert found(tmp_path, ended, timedelta(hours=9, minutes=13)) == ("hang.silent", True)


@pytest.mark.parametrize(
    ("ended", "expected"), [(LIMIT, "scheduler.time_limit"), (BY_HAND, "scheduler.cancelled")]
)
@pytest.mark.parametrize(
    ("idle", "said", "save"),
    [
        (timedelta(seconds=5), "", 0.0),
        (timedelta(minutes=12), "", 0.0),  # somebody may have looked, and a save may take so long
        (timedelta(hours=2, seconds=6), "", 0.0),  # clocks of two zones
        (timedelta(minutes=70), "evaluating on 20000 documents", 0.0),
        (timedelta(minutes=100), "", 2400.0),  # not even three times as long as its saves take
    ],
)
def test_what_worked_until_its_end_was_ended(
    tmp_path: Path, ended: str, expected: str, idle: timedelta, said: str, save: float
) -> None:
    assert found(tmp_path, ended, idle, said, save)[0] == expected


def answers(rank: int, done: int, *, waits: bool) -> str:
    """A rank that answers its 200 questions, one every 12 s, below a bar without times."""
    text = f"{BEGAN:%Y-%m-%d %H:%M:%S} judge of rank {rank}/4 host c3{rank // 2}\n"
    for number in range(10, done + 1, 10):
        minutes, seconds = divmod(12 * number, 60)
        drawn = "█" * (number // 20)
        told = f"{number}/200 [{minutes}:{seconds:02d}<09:10, 12.1s/it]"
        text += f"rank {rank}: {number // 2}%|{drawn:10}| {told}\n"
    end = BEGAN + timedelta(seconds=12 * done + 5 + rank)
    return text + (f"{end:%Y-%m-%d %H:%M:%S} rank {rank} has answered all, gathers\n" if waits else "")


@pytest.mark.parametrize(
    ("done", "hours", "expected"),
    [
        (130, 9.3, ("hang.silent", (2,))),
        (200, 9.3, ("scheduler.time_limit", ())),  # they all are at one place: what they do there is not told
        (130, 0.9, ("scheduler.time_limit", ())),  # the others wait no longer than they worked
    ],
)
def test_a_rank_that_broke_off_long_before_the_limit_while_its_peers_wait(
    tmp_path: Path, done: int, hours: float, expected: tuple[str, tuple[int, ...]]
) -> None:
    for rank in range(4):
        is_late = rank == 2 and done < 200
        text = answers(rank, done if is_late else 200, waits=not is_late)
        (tmp_path / f"judge-{rank}.out").write_text(text)
    (tmp_path / "judge.err").write_text(LIMIT.format(at=BEGAN + timedelta(hours=hours)) + "\n")
    verdict = triage(tmp_path, offline=True, workers=1).verdict
    assert (verdict.failure_type, tuple(verdict.culprits.ranks)) == expected
