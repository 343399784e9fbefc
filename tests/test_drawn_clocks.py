"""Bars without times tell by their own clocks when they were drawn last; hours later somebody looked."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged


def bars(total: int, done: int, *, every: int = 30, first: int = 0) -> str:
    """A bar of a step every so many seconds."""
    drawn = []
    for at in range(first, done + 1):
        ran = at * every
        clock = (
            f"{ran // 3600}:{ran // 60 % 60:02d}:{ran % 60:02d}"
            if ran >= 3600
            else f"{ran // 60:02d}:{ran % 60:02d}"
        )
        drawn.append(f" {100 * at // total}%|###   | {at}/{total} [{clock}<1:00:00, {every:.2f}s/it]\n")
    return "".join(drawn)


BEGUN = "2026-01-31 08:00:00,000 | grading part {}\n"
LOOK = "$ date; nvidia-smi --query-gpu=index --format=csv,noheader\nSat Jan 31 {} UTC 2026\n0\n1\n"


@pytest.mark.parametrize(
    ("parts", "asked_at", "kind"),
    [
        ({"0": (120, 120), "1": (120, 44)}, "15:41:10", "hang.silent"),
        ({"0": (120, 70), "1": (120, 68)}, "15:41:10", "hang.silent"),
        # one was drawn within the hour, all are done, and clocks that a zone alone may part
        ({"0": (120, 70), "1": (120, 68)}, "09:05:10", "none.running"),
        ({"0": (120, 120), "1": (120, 120)}, "15:41:10", "none.running"),
        ({"0": (120, 70), "1": (120, 68)}, "15:35:05", "none.running"),
    ],
)
def test_a_bar_that_nobody_drew_for_hours_stands(
    tmp_path: Path, parts: dict[str, tuple[int, int]], asked_at: str, kind: str
) -> None:
    files = {f"part_{name}.out": BEGUN.format(name) + bars(*part) for name, part in parts.items()}
    files["look.txt"] = LOOK.format(asked_at)
    assert judged(tmp_path, files).verdict.failure_type == kind


@pytest.mark.parametrize(("suspended", "kind"), [(True, "hang.silent"), (False, "none.running")])
def test_a_full_bar_stands_where_its_program_was_suspended(
    tmp_path: Path, suspended: bool, kind: str
) -> None:
    log = (
        f"kim@g4:~$ ./tune all.yaml\n{BEGUN.format(1)}{bars(100, 100)}part kept\n{bars(100, 100)}"
        "keeping the part, gathering all tensors first\n"
        + ("^Z\n[1]+  Stopped                 ./tune all.yaml\n" if suspended else "")
        + "kim@g4:~$ date\nSat Jan 31 19:15:10 UTC 2026\n"
    )
    assert judged(tmp_path, {"typescript": log}).verdict.failure_type == kind
