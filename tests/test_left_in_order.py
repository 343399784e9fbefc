"""Programs that no word says to be done: a full bar of all steps, or a prompt that came back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def bars(total: int, done: int) -> str:
    return "".join(
        f"steps: {100 * step // total:3d}%|##  | {step}/{total} [{step // 30:02d}:00<09:00,  2.02s/it]\r"
        for step in range(30, done + 1, 30)
    )


SAVED = "\nsaving lora weights to out/style.safetensors\nINFO     weights saved.\n"


@pytest.mark.parametrize(
    ("head", "end", "kind"),
    [
        ("  total optimization steps / steps: 900\n", SAVED, "none.completed"),
        ("***** total train steps = 1,800 *****\n", SAVED, "none.running"),  # the bar is of one of two parts
        ("  total optimization steps: 900\n", "\nINFO     saving weights\n", "none.running"),
    ],
)
def test_a_full_bar_of_all_steps_with_a_save_below_is_the_end(
    tmp_path: Path, head: str, end: str, kind: str
) -> None:
    log = head + bars(900, 900) + end
    assert judged(tmp_path, {"console.txt": log}).verdict.failure_type == kind


@pytest.mark.parametrize(
    ("command", "end", "kind"),
    [
        ("python fit.py", "me@box:~/run$ ", "none.completed"),
        ("tail -n 60 fit.log", "me@box:~/run$ ", "none.running"),
        ("python fit.py > fit.log &", "me@box:~/run$ ", "none.running"),
        ("python fit.py", "^C\nme@box:~/run$ ", "none.running"),
        ("python fit.py", "", "none.running"),
    ],
)
def test_a_prompt_that_came_back_behind_a_save_tells_that_the_program_ended(
    tmp_path: Path, command: str, end: str, kind: str
) -> None:
    log = f"me@box:~/run$ {command}\n{steps(90)}model saved to best.pt\n{end}"
    assert judged(tmp_path, {"session.txt": log}).verdict.failure_type == kind
