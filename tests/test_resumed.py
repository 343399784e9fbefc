"""A failure that a run was taken up after, in the same log, did not end the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from logtriage.pipeline import triage

LOST = [
    "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
    "(Controller) ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
]


@pytest.mark.parametrize(
    ("resumed", "steps", "expected"), [(True, 9, "none.running"), (False, 9, None), (True, 2, None)]
)
def test_who_resumes_and_goes_on_has_survived(
    tmp_path: Path, resumed: bool, steps: int, expected: str | None
) -> None:
    def rows(first: int, count: int, rank: int) -> list[str]:
        return [f"[rank{rank}]: epoch {at} loss {2 - at / 50:.3f}" for at in range(first, first + count)]

    again = ["[rank0]: resumes at epoch 8"] if resumed else []
    below = [*again, *rows(8, steps, 0), *rows(8, 1, 1)]  # of the second rank the driver shows little
    (tmp_path / "driver.log").write_text("\n".join([*rows(0, 9, 0), *rows(0, 9, 1), *LOST, *below, ""]))
    found = triage(tmp_path, offline=True, workers=1).verdict.failure_type
    assert found == (expected or "process.killed")


def test_a_rank_that_nobody_reaches_and_that_says_nothing_is_who_is_absent(tmp_path: Path) -> None:
    for rank, misses in ((0, (1, 3)), (1, (3,)), (2, (3, 3))):
        lines = [
            f"[LightGBM] [Warning] Connecting to rank {peer} failed, waiting for 260 milliseconds"
            for peer in misses
        ]
        lines += ["[LightGBM] [Fatal] Socket accept error, Resource temporarily unavailable (code: 11)"]
        (tmp_path / f"rank{rank}.log").write_text("\n".join(["[LightGBM] [Info] Listening...", *lines, ""]))
    found = triage(tmp_path, offline=True, workers=1).verdict
    assert (found.failure_type, found.culprits.ranks) == ("network.rendezvous", (3,))
