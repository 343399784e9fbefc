"""What small programs around a job say of its end, and of what else they say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from logtriage.pipeline import triage

STEPS = "".join(f"2026-03-01 06:20:{at:02d} INFO step {at} loss 1.2\n" for at in range(20))
RAISED = 'Traceback (most recent call last):\n  File "/srv/fit.py", line 3, in <module>\n    main()\n'


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            f"{STEPS}timeout: sending signal TERM to command ‘/opt/env/bin/python3.11’\n",
            "scheduler.time_limit",
        ),
        (f"timeout: sending signal TERM to command ‘ibstat’\n{STEPS}", "none.running"),
        (f"{RAISED}Exception: expected value at line 3 column 9\n", "data.corrupt"),
        (f"WARN tracker: the reply is no JSON: expected value at line 1 column 1\n{STEPS}", "none.running"),
        (f"{RAISED}ValueError: The config file at a.yaml had unknown keys (['zero3_init'])\n", "code.config"),
        (
            f"{RAISED}ValueError: Cannot assign value to variable ' head/kernel:0': Shape mismatch.The "
            "variable shape (96, 10), and the assigned value shape (64, 10) are incompatible.\n",
            "checkpoint.mismatch",
        ),
        (f"{STEPS}YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n", "process.killed"),
        (f"{STEPS}2026-03-01 06:20:20 INFO done, final nll 1.19\n", "none.completed"),
        (f"{STEPS}2026-03-01 06:20:20 INFO epoch 3 done, best nll 1.19\n", "none.running"),
    ],
)
def test_it_is_told_from_what_looks_like_it(tmp_path: Path, said: str, expected: str) -> None:
    (tmp_path / "job.out").write_text(said)
    assert triage(tmp_path, offline=True, workers=1).verdict.failure_type == expected
