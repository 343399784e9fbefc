"""Who wrote a line, as launchers and what gathers their output tell it: small jobs of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def behind(label: str, text: str) -> str:
    return "".join(f"{label}{line}\n" for line in text.splitlines())


TYPE_ERROR = traceback("TypeError: can only concatenate str (not \"int\") to str")
OUT_OF_MEMORY = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.")


@pytest.mark.parametrize(
    ("label", "told"),
    [
        pytest.param(
            "[2026-01-31T08:20:00.000001Z] {id8} [rank={rank}] || ",
            "[2026-01-31T08:21:00.1Z]          || ERROR: container {id8} on agent {host} exited with code 1",
            id="Determined",
        ),
        pytest.param(
            "{id12} | [rank{rank}]: ",
            "launcher: container {id64} started on host {host}",
            id="Docker's short id, with the long one told",
        ),
        pytest.param(
            "[{yarn}] [rank{rank}] ",
            "INFO Container {yarn} allocated on host {host}",
            id="YARN",
        ),
    ],
)
def test_a_container_runs_where_its_starter_says(tmp_path: Path, label: str, told: str) -> None:
    def filled(text: str, rank: int) -> str:
        short = f"{rank // 4 + 5}f2c81d0"
        return text.format(
            id8=short, id12=f"{short}9ab1", id64=f"{short}9ab1" + "0c" * 26, rank=rank,
            host=f"pod-gpu{rank // 4 + 31}", yarn=f"container_1769_0001_01_00000{rank // 4 + 2}",
        )  # fmt: skip

    text = "".join(filled(told, rank) + "\n" for rank in (0, 4))
    text += "".join(behind(filled(label, rank), f"step {n} loss 2.1") for n in range(9) for rank in range(8))
    text += behind(filled(label, 6), OUT_OF_MEMORY)
    body = judged(tmp_path, {"job.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == (
        "cuda.out_of_memory", (6,), ("pod-gpu32",)
    )  # fmt: skip


@pytest.mark.parametrize(
    "label",
    [
        "[pod {pod}] ", "[pod/{pod}/main] ", "[pod={pod}] ", '{{pod="{pod}"}} ', "ns/{pod}[main]: ",
        '{{pod="{pod}", container="main"}} ', "[{pod} main] ", "[{pod}] ", "{pod} main ", "{pod} › main ",
        "{pod} | ", "{pod}| ", "{pod}  | ",
    ],
)  # fmt: skip
def test_a_pods_name_before_each_line(tmp_path: Path, label: str) -> None:
    text = "".join(
        behind(label.format(pod=f"bert-w-0-{at}"), f"INFO rank {at * 8 + n}: device {n} is up")
        for at in range(3)
        for n in range(8)
    )
    text += behind(label.format(pod="bert-w-0-1"), TYPE_ERROR)
    body = judged(tmp_path, {"pods.log": text}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("code.type", ("bert-w-0-1",))
