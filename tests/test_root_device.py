"""Where it began when ranks wait for each other: the shapes of a collective library's time-outs, each once.

The shapes are those that Ascend FaultDiag tells apart (nobody reports, links at their retry limit, a library
that names the device, waits while connecting, time-outs by absence, lateness, index, operation and chain);
the wording is PyTorch's, NCCL's and gloo's.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scenes import clock, findings, of_rank, steps

from logtriage.diagnose.offline import decide
from logtriage.intake.reading import Reading

Job = Callable[[], list[Reading]]
RANKS = range(8)


def at(seconds: float) -> str:
    """A time of day for a C++ log line, `seconds` after the last step."""
    whole = 8 * 3600 + 60 + int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.100000000"


def gave_up(
    rank: int, *, seq: int = 120, op: str = "ALLREDUCE", numel: int = 4096, after: float = 600
) -> str:
    return (
        f"[rank{rank}]:[E131 {at(after)} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, "
        "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )


def standing(rank: int, enqueued: int, completed: int, *, group: int = 0) -> str:
    return (
        f"[rank{rank}]:[E131 {at(600)} ProcessGroupNCCL.cpp:1785] [PG ID {group} PG GUID 0 Rank {rank}] "
        f"failure detected by watchdog at work sequence id: {completed + 1} PG status: "
        f"last enqueued work: {enqueued}, last completed work: {completed}\n"
    )


def trained(rank: int, text: str = "", *, count: int = 30, host: str | None = None) -> Reading:
    return of_rank(rank, steps(count) + text, host=host)


def nobody_reports() -> list[Reading]:
    return [trained(rank, count=12 if rank == 5 else 30) for rank in RANKS] + [
        of_rank(0, steps(30) + gave_up(0))
    ]


def one_says_nothing() -> list[Reading]:
    return [trained(rank, "" if rank == 5 else gave_up(rank)) for rank in RANKS]


def two_say_nothing() -> list[Reading]:
    return [trained(rank, "" if rank in (2, 5) else gave_up(rank)) for rank in RANKS]


def one_left_no_file() -> list[Reading]:
    return [trained(rank, gave_up(rank)) for rank in RANKS if rank != 5]


def one_comes_late() -> list[Reading]:
    return [trained(rank, gave_up(rank, after=1500 if rank == 5 else 600)) for rank in RANKS]


def one_is_behind() -> list[Reading]:
    return [trained(rank, gave_up(rank, seq=118 if rank == 5 else 120)) for rank in RANKS]


def one_enqueued_less() -> list[Reading]:
    return [
        trained(rank, gave_up(rank) + standing(rank, *((119, 119) if rank == 5 else (123, 119))))
        for rank in RANKS
    ]


def one_completed_all() -> list[Reading]:
    return [trained(rank, gave_up(rank) + standing(rank, 123, 123 if rank == 5 else 119)) for rank in RANKS]


def one_is_in_another_operation() -> list[Reading]:
    return [trained(rank, gave_up(rank, op="BROADCAST" if rank == 5 else "ALLREDUCE")) for rank in RANKS]


def one_brings_another_size() -> list[Reading]:
    return [trained(rank, gave_up(rank, numel=2048 if rank == 5 else 4096)) for rank in RANKS]


def peers_name_one() -> list[Reading]:
    barrier = f"{clock(700)} ERROR RuntimeError: Rank 5 failed to pass monitoredBarrier in 600000 ms\n"
    return [trained(rank, gave_up(rank) + (barrier if rank == 0 else "")) for rank in RANKS]


def a_chain_of_waits() -> list[Reading]:
    def text(rank: int) -> str:
        if rank == 5:
            return gave_up(5, op="RECV")
        peer = rank + 1 if rank < 5 else rank - 1
        return (
            f"{clock(700)} ERROR p2p recv timed out after 600 s waiting for data from rank {peer}\n"
            + gave_up(rank, op="RECV")
        )

    return [trained(rank, text(rank)) for rank in RANKS]


def another_error_first() -> list[Reading]:
    own = f"{clock(62)} ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    return [trained(rank, own if rank == 5 else gave_up(rank)) for rank in RANKS]


def links_to_one_host_give_up() -> list[Reading]:
    def text(rank: int) -> str:
        return (
            f"node-{rank}:77:99 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{rank}<0>\n"
            + steps(30)
            + (
                f"[2026-01-31 08:01:05] node-{rank}:77:99 [0] transport/net_ib.cc:2301 NCCL WARN NET/IB: Got "
                "completion from peer 10.0.0.5<4791> with status=12 opcode=0 len=0 vendor err 129 (Send)\n"
                if rank != 5
                else ""
            )
        )

    return [of_rank(rank, text(rank), host=f"node-{rank}") for rank in RANKS]


@pytest.mark.parametrize(
    "job",
    [
        nobody_reports,
        one_says_nothing,
        one_left_no_file,
        one_comes_late,
        one_is_behind,
        one_enqueued_less,
        one_completed_all,
        one_is_in_another_operation,
        one_brings_another_size,
        peers_name_one,
        a_chain_of_waits,
        another_error_first,
    ],
)
def test_it_began_at_rank_five(job: Job) -> None:
    assert decide(findings(*job())).culprits.ranks == (5,)


def test_several_that_say_nothing_are_all_named() -> None:
    assert decide(findings(*two_say_nothing())).culprits.ranks == (2, 5)


def test_two_that_wait_for_each_other_are_both_named() -> None:
    def text(rank: int) -> str:
        if rank > 1:
            return gave_up(rank)
        return f"{clock(700)} ERROR send timed out after 600 s, waiting for rank {1 - rank}\n" + gave_up(rank)

    assert decide(findings(*(trained(rank, text(rank)) for rank in RANKS))).culprits.ranks == (0, 1)


def test_the_host_to_which_all_links_fail_is_named() -> None:
    assert decide(findings(*links_to_one_host_give_up())).culprits.hosts == ("node-5",)


def test_where_all_wait_alike_nobody_is_named() -> None:
    assert decide(findings(*(trained(rank, gave_up(rank)) for rank in RANKS))).culprits.ranks == ()
