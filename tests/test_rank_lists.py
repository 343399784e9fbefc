"""Lines that list the times of all ranks in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged

from logtriage.localize.rank_lists import listed_times


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "it 7 | forward per rank: 0.5 0.5 1.25 | gradient wait: 0.75 0.75 0.0",
            {"it 7 | forward": None, "gradient wait": [0.75, 0.75, 0.0]},
        ),
        ("compute time per rank (ms): [500, 250, 250]", {"compute time": [0.5, 0.25, 0.25]}),
        ("per-rank backward = 1.5/1.5/3", {"backward": [1.5, 1.5, 3.0]}),
        ("tokens per rank: 4096", {}),
        ("rank 3: 1 2 3", {}),
    ],
)
def test_lists_of_all_ranks_are_read(text: str, told: dict[str, list[float] | None]) -> None:
    found = dict(listed_times(text))
    if told and None in told.values():
        assert list(found) == ["forward", "gradient wait"]
    else:
        assert found == told


def _steps(slow: float) -> str:
    rows = (
        f"[update {40 * n}] took {2.0 + n / 100:.2f} s"
        f" | compute per rank: 0.9{n} 0.9{n} 0.9{n} {slow + n / 100:.2f}"
        f" | sync wait: {slow - 0.9:.1f} {slow - 0.9:.1f} {slow - 0.9:.1f} 0.0\n"
        for n in range(1, 7)
    )  # fmt: skip
    return "".join(rows)


@pytest.mark.parametrize(("slow", "ranks"), [(1.9, (3,)), (0.9, ())])
def test_the_rank_that_is_slow_in_the_lists_is_the_straggler(
    tmp_path: Path, slow: float, ranks: tuple[int, ...]
) -> None:
    body = judged(tmp_path, {"train.log": _steps(slow)}).verdict
    assert (body.failure_type == "slow.straggler") is bool(ranks)
    assert body.culprits.ranks == ranks
