"""One member that never said at the start what all others said, while somebody looked hours later."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged


def joined(missing: set[int], *, size: int = 12, behind: str = "") -> str:
    boxes = "".join(f"box {box} answers at 10.3.0.{40 + box}\n" for box in range(3))
    said = "".join(
        f"2026-01-31 08:00:{at:02d},000 box <{at // 4}> learner <{at}> has the weights\n"
        for at in (*range(0, size, 2), *range(1, size, 2))
        if at not in missing
    )
    return f"2026-01-31 08:00:00,000 asking for {size} learners\n{boxes}{said}{behind}"


LOOK = "kim@h:~$ date; pgrep -fc learn.py\nSat Jan 31 {} UTC 2026\n12\n"


@pytest.mark.parametrize(
    ("log", "asked_at", "kind", "ranks", "hosts"),
    [
        (joined({6}), "11:47:20", "hang.silent", (6,), ("10.3.0.41",)),
        (joined({3, 9}), "11:47:20", "hang.silent", (3, 9), ("10.3.0.40", "10.3.0.42")),
        # all are there, it is early, many are missing, or the log goes on
        (joined(set()), "11:47:20", "unknown", (), ()),
        (joined({6}), "08:07:20", "unknown", (), ()),
        (joined({1, 6, 7, 8}), "11:47:20", "unknown", (), ()),
        (joined({6}, behind="built a table of the pages\n" * 9), "11:47:20", "unknown", (), ()),
    ],
)
def test_who_alone_never_said_it_is_waited_for(
    tmp_path: Path, log: str, asked_at: str, kind: str, ranks: tuple[int, ...], hosts: tuple[str, ...]
) -> None:
    found = judged(tmp_path, {"start.log": log, "look.txt": LOOK.format(asked_at)}).verdict
    assert found.failure_type == kind
    assert (tuple(found.culprits.ranks), tuple(found.culprits.hosts)) == (ranks, hosts)
