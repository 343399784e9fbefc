"""A job that stands still: who stopped before its peers, and what somebody saw of its logs hours later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, first, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


UNDATED = "".join(f"Batch: {number}/900 epoch 3 loss 2.1\n" for number in range(300))


@pytest.mark.parametrize(
    "look",
    [
        "$ date +%s\n1769900000\n$ stat -c '%n %y' train.log\ntrain.log 2026-01-31 10:02:11.5000 +0100\n",
        "$ stat -c '%n %y' /out/train.log\n/out/train.log 2026-01-31 10:02:11.500000000 +0000\n"
        " 16:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n",
        "2026-01-31 22:02:11.500 +0000\n 04:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n",
    ],
)
def test_a_log_that_had_not_grown_for_hours_stands_still(tmp_path: Path, look: str) -> None:
    assert judged(tmp_path, {"train.log": UNDATED, "look.txt": look}).verdict.failure_type == "hang.silent"


@pytest.mark.parametrize(
    "look",
    [
        "$ date +%s\n1769850200\n$ stat -c '%n %y' train.log\ntrain.log 2026-01-31 10:02:11.5000 +0100\n",
        "train.log 2026-01-31 10:02:11.500000000 +0000\n 10:03:10 up 12 days,  3:02\n",
        "2026-01-31 10:02:11.500 +0000\n 10:03:10 up 12 days,  3:02,  load average: 8.00, 8.01\n",
    ],
)
def test_a_log_that_grew_a_minute_ago_runs(tmp_path: Path, look: str) -> None:
    assert judged(tmp_path, {"train.log": UNDATED, "look.txt": look}).verdict.failure_type == "none.running"


STOOD = "2026-01-31 10:02:11.500 +0000\n 16:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n"


@pytest.mark.parametrize(("count", "late"), [(4, 2), (7, 5)])
def test_who_stopped_steps_before_all_its_peers_is_the_one_they_wait_for(
    tmp_path: Path, count: int, late: int
) -> None:
    files = {f"rank{rank}.log": steps(50 - 3 * (rank == late)) for rank in range(count)}
    verdict = judged(tmp_path, {**files, "look.txt": STOOD})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("hang.silent", (late,))
    assert first(verdict)[0] == f"rank{late}.log"
    assert "step 47 " in first(verdict)[1]


def test_where_all_stop_at_other_steps_nobody_stopped_first(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": steps(50 - rank) for rank in range(4)}
    assert judged(tmp_path, {**files, "look.txt": STOOD}).verdict.culprits.ranks == ()
