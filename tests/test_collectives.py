"""Who is missing when every rank complains, and who was in another collective."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import WATCHDOG, clock, findings, judged, of_rank, reading, scene, steps

from logtriage.diagnose.offline import decide
from logtriage.intake.reading import Reading
from logtriage.localize.collectives import Waiting, mismatch, naming, silent_ranks, waits
from logtriage.model import SourceRole

WORK = (
    "[rank{rank}]:[E131 08:30:{second:02d}.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
ENQUEUED = (
    "[rank{rank}]:[E131 08:30:02.100000000 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) "
    "Rank {rank}] Exception (either an error or timeout) detected by watchdog at work: {seq}, "
    "last enqueued NCCL work: {last}, last completed NCCL work: {done}.\n"
)
PRINT = (
    "CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape={shape}, TensorDtypes=Float, "
    "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda))"
)


def timed_out(rank: int, *, seq: int = 120, op: str = "ALLREDUCE", numel: int = 1024, second: int = 1) -> str:
    return WORK.format(rank=rank, seq=seq, op=op, numel=numel, second=second)


def enqueued(rank: int, last: int) -> str:
    return ENQUEUED.format(rank=rank, seq=last, last=last, done=last - 1)


def waiting(*told: tuple[int, int, str]) -> list[Waiting]:
    return waits(scene(*(of_rank(rank, timed_out(rank, seq=seq, op=op)) for rank, seq, op in told)))


def suspects(*readings: Reading) -> tuple[int, ...] | None:
    found = findings(*readings)
    told = silent_ranks(found.candidates, found.topology, found.progress, found.scene)
    return None if told is None else told.ranks


def test_what_each_rank_waited_in_is_read_from_its_watchdog() -> None:
    (one,) = waits(scene(of_rank(3, timed_out(3, seq=77, op="_ALLGATHER_BASE", numel=55))))
    assert (one.rank, one.sequence, one.operation, one.shape) == (3, 77, "_ALLGATHER_BASE", "55")


def test_whose_own_watchdog_stood_still_is_no_victim() -> None:
    stuck = (
        "[rank2]:[F131 08:30:01.100000000 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 2] "
        "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring "
        "enqueued collectives. This typically indicates a NCCL/CUDA API hang blocking the "
        "watchdog.\n"
    )
    others = [
        of_rank(0, "INFO own words\n" + timed_out(0)),
        *(of_rank(rank, timed_out(rank)) for rank in (1, 3)),
    ]
    assert suspects(*others, of_rank(2, stuck)) == (2,)


def test_irregular_reports_of_steps_put_nobody_behind() -> None:
    def told(rank: int, *numbers: int) -> Reading:
        made = "".join(steps(1, first=number, at=2.0 * number) for number in numbers)
        return of_rank(rank, made + timed_out(rank))

    regular = [told(rank, *range(1, 31)) for rank in range(5)]
    assert suspects(*regular, told(5, *range(1, 21))) == (5,)
    now_and_then = [told(rank, *range(1, 31, 5)) for rank in range(5)]
    assert suspects(*now_and_then, told(5, *range(1, 24, 5))) is None


def test_the_first_that_a_rank_waited_in_counts() -> None:
    (one,) = waits(scene(of_rank(3, timed_out(3, seq=77) + timed_out(3, seq=78))))
    assert one.sequence == 77


def test_both_sides_of_a_fingerprint_are_read() -> None:
    text = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        + PRINT.format(seq=5, op="ALLREDUCE", shape="[10]")
        + ", but Rank 1 is running collective: "
        + PRINT.format(seq=5, op="BROADCAST", shape="[4, 2]")
        + ".\n"
    )
    found = waits(scene(of_rank(0, text)))
    assert [(each.rank, each.sequence, each.operation, each.shape) for each in found] == [
        (0, 5, "ALLREDUCE", "[10]"),
        (1, 5, "BROADCAST", "[4, 2]"),
    ]


def test_fingerprints_without_a_number_are_read() -> None:
    text = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running inconsistent "
        "collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[10], TensorDtypes=Float)\n"
    )
    (one,) = waits(scene(of_rank(2, text)))
    assert (one.rank, one.operation) == (2, "ALLREDUCE")


def test_the_odd_one_out_is_named() -> None:
    found = mismatch(
        waiting((0, 9, "ALLREDUCE"), (1, 9, "ALLREDUCE"), (2, 9, "BROADCAST"), (3, 9, "ALLREDUCE"))
    )
    assert found is not None
    assert found.odd == (2,)
    assert "BROADCAST of 1024 (ranks 2)" in found.text


def test_an_even_split_names_nobody() -> None:
    found = mismatch(waiting((0, 9, "ALLREDUCE"), (1, 9, "BROADCAST")))
    assert found is not None
    assert found.odd == ()


@pytest.mark.parametrize(
    "told",
    [
        [],
        [(0, 9, "ALLREDUCE")],
        [(0, 9, "ALLREDUCE"), (1, 9, "ALLREDUCE")],
        [(0, 9, "ALLREDUCE"), (1, 500, "BROADCAST")],  # groups count their collectives separately
    ],
)
def test_the_same_or_unrelated_collectives_are_no_mismatch(told: Sequence[tuple[int, int, str]]) -> None:
    assert mismatch(waiting(*told)) is None


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4), st.sampled_from("AB")), unique_by=lambda t: t[0])
)
@settings(max_examples=60, deadline=None)
def test_whoever_is_odd_is_a_minority(told: list[tuple[int, int, str]]) -> None:
    found = mismatch(waiting(*told))
    if found is not None:
        assert not found.odd or len(found.odd) * 2 < len(told)
        assert set(found.odd) <= {rank for rank, _, _ in told}
        assert found.lines


def test_the_order_of_ranks_does_not_decide_who_is_odd() -> None:
    told = [(0, 9, "ALLREDUCE"), (1, 9, "ALLREDUCE"), (2, 9, "BROADCAST"), (3, 9, "BARRIER")]
    one, two = mismatch(waiting(*told)), mismatch(waiting(*reversed(told)))
    assert one is not None
    assert two is not None
    assert one.odd == two.odd


def test_the_rank_that_says_nothing_is_the_suspect() -> None:
    ranks = [of_rank(rank, steps(4) + (timed_out(rank) if rank != 2 else "")) for rank in range(4)]
    assert suspects(*ranks) == (2,)


def test_where_all_complain_alike_nobody_is_suspected() -> None:
    assert suspects(*(of_rank(rank, steps(4) + timed_out(rank)) for rank in range(4))) is None


def test_where_most_are_silent_their_logs_are_simply_not_here() -> None:
    ranks = [of_rank(rank, steps(4) + (timed_out(rank) if rank < 2 else "")) for rank in range(8)]
    assert suspects(*ranks) is None


def test_a_job_without_complaints_has_no_suspect() -> None:
    assert suspects(of_rank(0, steps(4)), of_rank(1, steps(4))) is None


def test_the_rank_that_enqueued_fewer_collectives_is_behind() -> None:
    ranks = [of_rank(rank, timed_out(rank) + enqueued(rank, 121 if rank != 1 else 118)) for rank in range(4)]
    assert suspects(*ranks) == (1,)


def test_without_a_usual_number_nobody_is_behind() -> None:
    ranks = [of_rank(rank, timed_out(rank) + enqueued(rank, 122 - rank)) for rank in range(4)]
    assert suspects(*ranks) is None


def test_the_rank_that_stopped_at_an_earlier_step_is_suspected() -> None:
    ranks = [of_rank(rank, steps(30 if rank != 3 else 20) + timed_out(rank)) for rank in range(4)]
    assert suspects(*ranks) == (3,)


def test_one_step_behind_is_no_difference() -> None:
    ranks = [of_rank(rank, steps(30 if rank != 3 else 29) + timed_out(rank)) for rank in range(4)]
    assert suspects(*ranks) is None


def test_a_silent_rank_is_blamed_with_its_last_step_in_evidence() -> None:
    ranks = [
        of_rank(rank, steps(9 if rank != 2 else 7) + (timed_out(rank) if rank != 2 else ""))
        for rank in range(4)
    ]
    decision = decide(findings(*ranks))
    assert (decision.failure_type, decision.culprits.ranks) == ("collective.timeout", (2,))
    assert decision.decided_by == "localisation"
    assert ("rank2.log", 7) in {(each.line.file, each.line.number) for each in decision.evidence}
    assert any("rank 2" in told for told in decision.collect_next)


def test_the_last_words_of_a_silent_rank_are_the_cause() -> None:
    word = f"{clock(20)} WARNING retrying read of shard: OSError: [Errno 5] Input/output error\n"
    ranks = [of_rank(rank, steps(9) + (timed_out(rank) if rank != 2 else word)) for rank in range(4)]
    decision = decide(findings(*ranks))
    assert (decision.failure_type, decision.culprits.ranks) == ("storage.filesystem", (2,))
    assert decision.evidence[0].line.file == "rank2.log"


def test_ranks_in_different_collectives_are_a_desync_and_the_odd_one_is_blamed() -> None:
    ranks = [
        of_rank(rank, steps(9) + timed_out(rank, op="ALLREDUCE" if rank != 3 else "BROADCAST"))
        for rank in range(4)
    ]
    decision = decide(findings(*ranks))
    assert (decision.failure_type, decision.culprits.ranks) == ("collective.desync", (3,))
    assert "rank3.log" in {each.line.file for each in decision.evidence}


def missed(rank: int) -> str:
    return f"[rank0]: RuntimeError: [Rank 0]: Rank {rank} failed to pass monitoredBarrier in 60000 ms\n"


def test_who_waits_in_a_collective_while_all_others_miss_it_at_a_barrier_is_on_another_path() -> None:
    ranks = [of_rank(rank, steps(9) + (missed(3) if rank == 0 else "")) for rank in range(3)]
    decision = decide(findings(*ranks, of_rank(3, steps(9) + timed_out(3))))
    assert (decision.failure_type, decision.culprits.ranks) == ("collective.desync", (3,))
    assert {each.line.file for each in decision.evidence} >= {"rank0.log", "rank3.log"}


def test_who_is_missed_at_a_barrier_and_says_nothing_is_only_late() -> None:
    ranks = [of_rank(rank, steps(9) + (missed(3) if rank == 0 else "")) for rank in range(4)]
    assert decide(findings(*ranks)).failure_type == "collective.timeout"


def test_the_abort_of_a_rank_by_its_own_watchdog_is_no_crash() -> None:
    launcher = (
        "[2026-01-31 08:41:02,412] torch.distributed.elastic.multiprocessing.api: [ERROR] failed "
        "(exitcode: -6) local_rank: 3 (pid: 88) of binary: /opt/bin/python\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-31_08:41:02\n  host      : cn-1\n"
        "  rank      : 3 (local_rank: 3)\n  exitcode  : -6 (pid: 88)\n  error_file: <N/A>\n"
        "  traceback : Signal 6 (SIGABRT) received by PID 88\n"
    )
    ranks = [of_rank(rank, steps(9) + (missed(3) if rank == 0 else timed_out(rank))) for rank in range(4)]
    decision = decide(findings(*ranks, reading("launcher.log", launcher)))
    assert (decision.failure_type, decision.culprits.ranks) == ("collective.timeout", (3,))


def test_the_same_operation_with_another_shape_is_a_desync() -> None:
    ranks = [of_rank(rank, steps(9) + timed_out(rank, numel=1024 if rank != 3 else 77)) for rank in range(4)]
    decision = decide(findings(*ranks))
    assert (decision.failure_type, decision.culprits.ranks) == ("collective.desync", (3,))


def test_prefixes_in_one_file_are_as_good_as_files() -> None:
    text = "".join(f"[rank{rank}]: step {step} loss 2.0\n" for step in range(1, 5) for rank in range(4))
    text += "".join(timed_out(rank) for rank in (0, 1, 3))
    assert suspects(reading("all.log", text, SourceRole.MERGED)) == (2,)


def test_the_odd_rank_is_cited_by_its_own_words_though_a_peer_named_it_first(tmp_path: Path) -> None:
    def mismatched(rank: int, *, odd: bool, peer: int) -> str:
        sides = [
            PRINT.format(seq=5, op="BARRIER" if is_odd else "ALLREDUCE", shape="" if is_odd else "[1]")
            for is_odd in (odd, not odd)
        ]
        return steps(9) + (
            f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running "
            f"collective: {sides[0]}, but Rank {peer} is running collective: {sides[1]}.\n"
        )

    files = {
        f"rank{rank}.log": mismatched(rank, odd=rank == 2, peer=0 if rank == 2 else 2) for rank in range(4)
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("collective.desync", (2,))
    assert [each.file for each in verdict.evidence] == ["rank2.log", "rank0.log"]


def test_of_two_silent_ranks_the_one_that_names_a_cause_is_blamed(tmp_path: Path) -> None:
    dropped = f"{clock(20)} WARNING dataloader: checksum mismatch in part-7.bin, shard dropped\n"
    files = {
        f"rank{rank}.log": steps(9)
        + (dropped if rank == 2 else "")
        + steps(20, first=10, at=22)
        + ("" if rank in (2, 5) else WATCHDOG.format(rank=rank, op="ALLREDUCE"))
        for rank in range(9)
    }
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("data.corrupt", (2,))


def test_who_names_a_rank_with_every_line_does_not_complain_of_it() -> None:
    files = []
    for rank in range(4):
        host = f"kx{rank // 2}"
        other = (rank + 2) % 4
        text = "".join(
            f"{clock(2.0 * at)} INFO host {host} rank {rank} step {at}, "
            f"0x7f{at * 7919:x} to elf-{other} on kx{other // 2}\n"
            for at in range(600)
        )
        if rank == 1:
            text += f"{clock(1900)} INFO the muster lacks elf-3 on kx1\n"
        files.append(of_rank(rank, text, host=host))
    found = findings(*files)
    told = naming(found.scene, found.topology, 3)
    assert told is not None and "muster" in told.text
    assert naming(found.scene, found.topology, 2) is None


@pytest.mark.parametrize(
    "words",
    [
        "First PG on this rank that detected no heartbeat of its watchdog.",
        "Received a dump signal due to a collective timeout from rank 7 and we will try our best to dump.",
    ],
)
def test_who_is_the_first_to_dump_is_not_who_was_missed(words: str) -> None:
    head = "[rank2]:[E131 08:30:09.100 ProcessGroupNCCL.cpp:2106] [PG ID 0 PG GUID 0(default_pg) Rank 2] "
    ranks = [of_rank(rank, steps(40) + timed_out(rank)) for rank in range(4)]
    ranks[2] = of_rank(2, steps(40) + timed_out(2) + head + words + "\n")
    assert decide(findings(*ranks)).culprits.ranks == ()
