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
