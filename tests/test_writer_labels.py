"""Labels in front of lines: which of them number the writers, and which count something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import bank_read_once, judged, reading, traceback

from logtriage.localize.writer_labels import writer_label

LABELS = (
    "trainer-{}  | ", "llm-worker-{} pytorch ", "trainer/{} ", "[R{}] ", "[GPU{}] ", "[cuda:{}] ",
    "[{}/8] ", "r{}> ", "[worker {}] ", "gpu-a rank{}: ",
)  # fmt: skip


def log(label: str) -> str:
    lines = [f"{label.format(rank)}step {step} loss 2.{step}" for step in range(1, 9) for rank in range(8)]
    lines += [
        f"{label.format(5)}{line}" for line in traceback("ZeroDivisionError: division by zero").splitlines()
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("label", LABELS)
def test_a_label_that_alternates_names_the_rank(tmp_path: Path, label: str) -> None:
    with bank_read_once():
        body = judged(tmp_path, {"train.log": log(label)}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.zero_division", (5,))


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"[{epoch}/9] batch {n} loss 2.1\n" for epoch in range(9) for n in range(20)),  # epochs go up
        "".join(f"[{n}/90] Compiling kernel_{n}.cu\n" for n in range(90)),  # each number once
        "".join(f"node-{n}  | step {s} loss 2.1\n" for s in range(9) for n in range(4)),  # machines
        "".join(f"trainer-{n}  | step {s} loss 2.1\n" for s in range(9) for n in (3, 7)),  # not from 0
        "".join(f"[rank{n}]: step {s} loss 2.1\n" for s in range(9) for n in range(4)),  # told without labels
        "\n" * 50,
    ],
)  # fmt: skip
def test_other_numbers_are_no_writers(text: str) -> None:
    label = writer_label(reading("train.log", text).lines)
    assert label is None or "rank" in text


def test_the_rank_behind_determineds_container(tmp_path: Path) -> None:
    text = "".join(
        f"[2026-01-31T08:00:{n:02d}.226970Z] 8d{rank:02d}ca81 [rank={rank}] || INFO: batch {n} loss=2.1\n"
        for n in range(1, 9)
        for rank in range(3)
    )
    text += (
        "[2026-01-31T08:00:20.226970Z] 8d02ca81 [rank=2] || torch.cuda.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 3.80 GiB (GPU 1; 39.39 GiB total capacity)\n"
        "[2026-01-31T08:00:21.226970Z]          || ERROR: allocation failed\n"
    )
    assert judged(tmp_path, {"trial.log": text}).verdict.culprits.ranks == (2,)
