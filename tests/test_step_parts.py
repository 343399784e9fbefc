"""Work and waiting in columns without a telling name."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, judged


@pytest.mark.parametrize("bar", ["", "Progress: 100%|####| 9000/9000 [01:18<00:00, 2.0s/it]\n"])
def test_shorter_numbers_in_their_columns_are_of_the_same_kind(tmp_path: Path, bar: str) -> None:
    def told(step: int, rank: int) -> str:
        busy, idle = (1050.5, 850.5) if rank == 5 else (700.5 + step % 7, 1200.5 - step % 7)
        return f"{clock(2 * step)} [perf] s{step} busy={busy:7.2f} idle={idle:7.2f} lr 1e-4\n"

    files = {
        f"rank{rank}.log": "".join(
            f"{clock(2 * step)} INFO step {step} loss 2.1\n{told(step, rank)}" for step in range(1, 40)
        )
        + bar
        for rank in range(16)
    }
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("slow.straggler", (5,))


def test_parts_that_grew_when_a_rank_became_slow_are_held_against_the_step_as_it_is_now(
    tmp_path: Path,
) -> None:
    def told(step: int, rank: int) -> str:
        whole = 2000.0 if step > 30 else 1200.0
        busy = 1450.5 if step > 30 and rank == 5 else 700.5
        return f"{clock(2 * step)} [perf] s{step} busy={busy:7.2f} idle={whole - busy:7.2f}\n"

    files = {
        f"rank{rank}.log": "".join(
            f"{clock(2 * step)} INFO step {step} loss 2.1\n"
            + (told(step, rank) if rank % 2 or step > 28 else "")  # some ranks tell of few steps
            for step in range(1, 60)
        )
        for rank in range(16)
    }
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("slow.straggler", (5,))
    assert body.stage is not None and body.stage.iteration in (30, 31)
