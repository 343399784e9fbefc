"""Jobs whose first exchange never ends: who lacks an adapter, who came too late, and who only looks on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


WATCH = "".join(
    f"{clock(1200 * n)} INFO sentinel no iteration completed for {1200 * n} s\n" for n in range(1, 4)
)
BOTH = "[0]mlx5_2:1/IB [1]mlx5_5:1/IB [RO]"


def node(number: int, adapters: str, failed: str = "", after: str = "") -> dict[str, str]:
    host, log = f"gpx-{number}", ""
    for local in range(2):
        head = f"{host}:80{local}:81{local} [{local}] "
        log += f"{head}NCCL INFO Bootstrap: Using eno1:10.3.0.{number}<0>\n"
        if failed:
            log += f"{head}transport/net_ib.cc:480 NCCL WARN NET/IB : Unable to open device {failed}\n"
        log += f"{head}NCCL INFO NET/IB : Using {adapters}; OOB eno1:10.3.0.{number}<0>\n"
        log += (
            f"{head}NCCL INFO ncclCommInitRankConfig comm 0x5{local} rank {2 * number + local} nranks 8 "
            f"cudaDev {local} nvmlDev {local} busId {local}000 commId 0x7 - Init COMPLETE\n"
        )
    return {f"{host}.log": log + after}


ONE = "[0]mlx5_2:1/IB [RO]"


@pytest.mark.parametrize(
    ("files", "hosts"),
    [
        ({**node(0, BOTH, after=WATCH), **node(1, BOTH), **node(2, ONE), **node(3, BOTH)}, ("gpx-2",)),
        ({**node(0, BOTH, after=WATCH), **node(1, ONE, "mlx5_5")}, ("gpx-1",)),
        ({**node(0, BOTH, after=WATCH), **node(1, ONE)}, ()),  # which of two kinds of machines is odd?
        ({**node(0, ONE, "mlx5_5", WATCH), **node(1, ONE, "mlx5_5"), **node(2, ONE, "mlx5_5")}, ()),
        ({**node(0, BOTH, after=steps(9) + WATCH), **node(1, ONE, "mlx5_5")}, ()),  # it had worked
    ],
)
def test_the_host_that_found_fewer_adapters_holds_up_the_first_exchange(
    tmp_path: Path, files: dict[str, str], hosts: tuple[str, ...]
) -> None:
    body = judged(tmp_path, files).verdict
    assert body.failure_type == "hang.silent"
    assert body.culprits.hosts == hosts  # nor who watched


WAITED = (
    "{} 301 E coordination: DEADLINE_EXCEEDED: Barrier timed out. "
    "Id: [Init]Wait_for_all_tasks_to_register::0. 5/6 tasks came\n"
)
REFUSED = "{} 302 E grpc: failed to connect to all addresses; last error: Connection refused\n"


STALLED = "{} 302 E requests.exceptions.ConnectTimeout: https://models.example.org:443 timed out\n"


@pytest.mark.parametrize(
    ("late", "words", "told"),
    [(700.0, REFUSED, "network.rendezvous"), (310.0, REFUSED, "network.connection"),
     (700.0, STALLED, "network.connection")],
)  # fmt: skip
def test_who_finds_nobody_that_had_given_up_long_before_is_only_late(
    tmp_path: Path, late: float, words: str, told: str
) -> None:
    files = {
        f"worker_{rank}.log": f"{clock(rank)} 300 INFO unpacking the environment\n"
        + WAITED.format(clock(301 + rank))
        for rank in range(6)
    }
    files["worker_4.log"] = (
        f"{clock(4)} 300 INFO unpacking the environment\n{clock(late - 9)} 300 INFO unpacked\n"
        + words.format(clock(late))
    )
    body = judged(tmp_path, files).verdict
    assert body.failure_type == told
    assert body.culprits.ranks == (4,)


ABSENT = "/job:jax_worker/replica:0/task:{}\n"


@pytest.mark.parametrize("label", ["", "[1,{}]<stderr>:"])
@pytest.mark.parametrize("absent", [(1, 4, 6), (5, 7, 6, 4)])
def test_a_list_below_a_barrier_names_all_that_did_not_come_to_it(
    tmp_path: Path, label: str, absent: tuple[int, ...]
) -> None:
    files = {}
    for rank in sorted({*range(8)} - {*absent}):
        said = (
            "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: saved::7. This usually "
            "happens because a task triggered the barrier too early or too slowly.\n"
            f"# of tasks that reached the barrier: {8 - len(absent)}/8.\nThe first task at the barrier: "
            "/job:jax_worker/replica:0/task:0. Some timed out task names:\n"
            + "".join(ABSENT.format(each) for each in absent)
        )
        words = "".join(label.format(rank) + line for line in said.splitlines(keepends=True))
        files[f"worker_{rank}.log"] = steps(30) + words
    body = judged(tmp_path, files).verdict
    assert body.failure_type == "collective.timeout"
    assert body.culprits.ranks == tuple(sorted(absent))


def test_who_is_missed_by_most_of_a_job_is_not_most_of_the_job(tmp_path: Path) -> None:
    said = "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: saved::7. Timed out task names:\n"
    said += "".join(ABSENT.format(each) for each in range(2, 8))
    files = {f"worker_{rank}.log": steps(30) + said for rank in range(2)}
    assert judged(tmp_path, files).verdict.culprits.ranks == ()
