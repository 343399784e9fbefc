"""Two equal sides of a job in different collectives, and one host of several without the fast network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from scenes import WATCHDOG, bank_read_once, clock, judged, place


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def side(ranks: Sequence[int], op: str, words: str) -> str:
    text = "".join(
        f"[rank{rank}] {clock(at)} INFO micro batch {at} of epoch 3\n" for at in range(8) for rank in ranks
    )
    text += "".join(f"[rank{rank}] {clock(9)} INFO {words}\n" for rank in ranks if words)
    return text + "".join(WATCHDOG.format(rank=rank, op=op) for rank in ranks)


@pytest.mark.parametrize(
    ("first", "second", "ranks"),
    [
        ("", "the shards are at their end, evaluating", (2, 3)),
        ("saving the optimizer", "", (0, 1)),
        ("", "", ()),
        ("saving the optimizer", "the shards are at their end, evaluating", ()),
    ],
)
def test_of_two_equal_sides_the_one_that_alone_said_something_else_left(
    tmp_path: Path, first: str, second: str, ranks: tuple[int, ...]
) -> None:
    files = {
        "node-a.log": side((0, 1), "ALLREDUCE", first),
        "node-b.log": side((2, 3), "ALLGATHER", second),
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("collective.desync", ranks)


def fabric(networks: Sequence[str], waited: float) -> str:
    text = "".join(
        f"{at}: cn{at}:51:90 [0] NCCL INFO Using network {network}\n" for at, network in enumerate(networks)
    )
    return text + "".join(
        f"0: {clock(20.0 * at)} step {at} loss 2.{at % 10} step_time 20.0s compute 2.0s comm_wait {waited}s\n"
        for at in range(30)
    )


@pytest.mark.parametrize(
    ("networks", "waited", "hosts"),
    [
        (("IB", "IB", "Socket", "IB"), 17.5, ("cn2",)),
        (("IB", "IB", "Socket", "IB"), 0.5, ()),
        (("Socket", "Socket", "Socket", "Socket"), 17.5, ()),
        (("IB", "Socket"), 17.5, ()),
    ],
)
def test_a_host_that_alone_talks_over_sockets_is_why_all_wait(
    tmp_path: Path, networks: Sequence[str], waited: float, hosts: tuple[str, ...]
) -> None:
    assert place(tmp_path, {"train.log": fabric(networks, waited)}) == ((), hosts)


def test_the_slow_rank_of_a_job_on_one_machine_runs_on_that_machine(tmp_path: Path) -> None:
    log = "[rank0] 4 devices on one node lab-7\n" + "".join(
        f"[rank{rank}] {clock(5.0 * at)} INFO step {at} compute: {4.0 if rank == 3 else 1.5}s "
        f"wait_comm: {0.1 if rank == 3 else 2.6}s\n"
        for at in range(20)
        for rank in range(4)
    )
    assert place(tmp_path, {"train.log": log}) == ((3,), ("lab-7",))
