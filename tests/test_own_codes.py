"""A code that a process of mp.spawn chose itself: no signal, and behind its last words no failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged, reading, scene, steps, traceback

from logtriage.localize.exits import gather_exits

DONE = "INFO Training finished.\n"
SPAWN = "torch.multiprocessing.spawn.ProcessExitedException: process {} terminated with exit code {}"


@pytest.mark.parametrize(
    ("words", "code", "well"),
    [
        (DONE, 149, True),
        (DONE, 77, True),
        (DONE, 1, False),
        (DONE + "2026-01-31 09:00:00,000 ERROR the store is gone\n", 77, False),
        ("", 77, False),
    ],
)
def test_who_was_done_chose_its_code(tmp_path: Path, words: str, code: int, well: bool) -> None:
    log = steps(30) + words + traceback(SPAWN.format(0, code))
    assert (judged(tmp_path, {"train.log": log}).verdict.failure_type == "none.completed") is well


def test_a_number_of_spawn_is_no_signal() -> None:
    log = reading("train.log", steps(30) + traceback(SPAWN.format(1, 149)))
    assert [each.code for each in gather_exits(scene(log))] == [149]
