"""When something began is found also where the first reading of a large file left a gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scenes import WATCHDOG, bank, clock, job, judged, of_rank, reading, scene, steps, traceback

from logtriage.intake.reading import Extent
from logtriage.localize.closer import with_companions
from logtriage.localize.durations import durations
from logtriage.localize.findings import find
from logtriage.localize.stragglers import Straggling, compare
from logtriage.model import SourceRole

RANKS = range(8)
STEPS = 600
SLOW_FROM = 331
PADDING = "INFO loader: batch of 512 samples from shard 17 fetched, " + "queue filled " * 8


def of_time(step: int, rank: int, *, slow: bool) -> str:
    late = slow and rank == 5 and step >= SLOW_FROM
    work, wait = (900, 10) if late else (600 + step % 7, 310 if slow and step >= SLOW_FROM else 12)
    told = f"{clock(2.0 * step)} INFO step {step} loss 2.{step % 10}5 compute {work}ms wait {wait}ms\n"
    return told + f"{clock(2.0 * step + 0.5)} {PADDING}{step}\n" * 8


def test_the_iteration_from_which_on_a_rank_was_slow_is_found_in_large_files(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": "".join(of_time(step, rank, slow=True) for step in range(1, STEPS))
        for rank in RANKS
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("slow.straggler", (5,))
    assert verdict.stage is not None and verdict.stage.iteration == SLOW_FROM


def test_the_first_reading_may_hold_only_slow_steps(tmp_path: Path) -> None:
    quiet = "".join(f"{clock(number / 100)} {PADDING}{number}\n" for number in range(900))
    files = {
        f"rank{rank}.log": steps(9)
        + quiet
        + "".join(of_time(step, rank, slow=True) for step in range(10, STEPS))
        for rank in RANKS
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("slow.straggler", (5,))
    assert verdict.stage is not None and verdict.stage.iteration == SLOW_FROM


def test_the_iteration_of_an_early_error_is_found_in_large_files(tmp_path: Path) -> None:
    full = f"{clock(2.0 * 300 + 1)} ERROR writer: shard write failed\n" + traceback(
        "OSError: [Errno 28] No space left on device", "flush"
    )
    files = {
        f"rank{rank}.log": "".join(
            (of_time(step, rank, slow=False) if rank == 0 else f"{clock(2.0 * step)} {PADDING}{step}\n" * 8)
            + (full if rank == 3 and step == 300 else "")
            for step in range(1, STEPS)
        )
        + (traceback("RuntimeError: checkpoint is incomplete") if rank == 3 else "")
        for rank in RANKS
    }
    stage = judged(tmp_path, files).verdict.stage
    assert stage is not None
    assert (stage.name, stage.iteration) == ("saving", 300)


def test_a_rank_without_such_lines_is_told_by_another_kind_of_them() -> None:
    def timed(rank: int) -> str:
        text = ""
        for number in range(40):
            work = (900 if rank in (4, 5) else 600) + number % 5
            if rank != 5:
                text += f"{clock(number)} INFO compute {work}ms wait 10ms\n"
            text += f"{clock(number)} INFO profile: forward_ms={work}\n"
        return text

    readings = [of_rank(rank, steps(3) + timed(rank)) for rank in range(16)]
    whole = scene(*readings)
    found = compare(durations(whole, find(whole, bank()).topology))
    assert isinstance(found, Straggling)
    assert found.ranks == (4, 5)


@pytest.mark.parametrize("few", [(3, 7, 13, 17, 37), (36, 37), (36,)])
def test_a_rank_that_wrote_few_such_lines_since_it_is_slow_is_slow(few: tuple[int, ...]) -> None:
    def timed(rank: int) -> str:
        text = ""
        for number in range(40):
            work = (900 if rank in (4, 5) and number > 20 else 600) + number % 5
            if rank != 5 or number in few:
                text += f"{clock(number)} INFO compute {work}ms\n"
            if rank != 5 or len(few) > 2 or (few == (36,) and number == 38):
                text += f"{clock(number)} INFO profile: forward_ms={work + 100}\n"
        return text

    readings = [of_rank(rank, steps(3) + timed(rank)) for rank in range(16)]
    whole = scene(*readings)
    found = compare(durations(whole, find(whole, bank()).topology))
    assert isinstance(found, Straggling)
    assert found.ranks == (4, 5)


def test_nccl_tells_the_rank_of_the_process_that_a_kernel_names(tmp_path: Path) -> None:
    def node(host: str, first: int) -> str:
        started = "".join(
            f"{host}: {host}:{4000 + first + local}:{local} [{local}] NCCL INFO cudaDriverVersion 12080\n"
            for local in range(4)
        )
        made = "".join(
            f"{host}: [rank{first + local}]: {clock(2.0 * step)} INFO step {step} loss 2.5 lr 1e-4\n"
            for step in range(30)
            for local in range(4)
        )
        return started + made

    struck = (
        "[Sat Jan 31 08:01:01 2026] NVRM: Xid (PCI:0000:be:00): 48, pid=4006, name=python, DBE (double bit "
        "error)\n"
    )
    files = {"node-a.log": node("node-a", 0), "node-b.log": node("node-b", 4), "sys/node-b.dmesg.log": struck}
    culprits = judged(tmp_path, files).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((6,), ("node-b",))


def test_of_slow_pods_the_node_is_named(tmp_path: Path) -> None:
    def slow(step: int, rank: int) -> str:
        work, wait = (900, 10) if rank in (4, 5) else (600 + step % 7, 310)
        return f"{clock(2.0 * step)} INFO step {step} loss 2.5 compute {work}ms wait {wait}ms\n"

    placed = "".join(
        f"{clock(pod)} INFO pod/train-worker-{pod} node=gpu-{pod + 7} phase=Running\n" for pod in range(8)
    )
    files = {
        f"train-worker-{pod}.log": "".join(
            f"[default{local}]:[rank{2 * pod + local}]: {slow(step, 2 * pod + local)}"
            for step in range(40)
            for local in range(2)
        )
        for pod in range(8)
    }
    culprits = judged(tmp_path, files | {"pytorchjob-controller.log": placed}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((4, 5), ("gpu-9",))


def test_who_waits_in_another_collective_is_read_between_many_that_wait_alike(tmp_path: Path) -> None:
    def node(number: int) -> str:
        told = "".join(f"{clock(step / 100)} {PADDING}{step}\n" for step in range(600))
        for rank in range(8 * number, 8 * number + 8):
            op = "_ALLGATHER_BASE" if rank == 43 else "ALLREDUCE"
            waited = WATCHDOG.replace("08:30:0{rank}.1", "08:30:01.1").format(rank=rank, op=op)
            told += waited + f"frame #1: c10d::watch() + 0x23d (0x7f{rank:03d}7 in libtorch_cuda.so)\n" * 90
        return told

    body = judged(tmp_path, {f"hz-b{number}.log": node(number) for number in range(64)}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.desync", (43,))


def test_slow_are_also_ranks_of_the_same_file_of_which_little_was_read_first(tmp_path: Path) -> None:
    def node(number: int) -> str:
        told = ""
        for step in range(1, 60):
            for rank in range(8 * number, 8 * number + 8):
                late = rank in (17, 18, 19, 22) and step >= 30
                work, wait = (900, 10) if late else (600 + step % 7, 310 if step >= 30 else 12)
                told += f"{rank}: {clock(2.0 * step)} INFO step {step} compute {work}ms wait {wait}ms\n"
        return told

    texts = {f"node-{number}.log": node(number) for number in range(8)}
    whole = [reading(file, text, SourceRole.WORKER) for file, text in texts.items()]
    few = tuple(each for each in whole[2].lines if each.rank not in (17, 22) or each.number < 20)
    read = [replace(each, lines=few, whole=False) if each is whole[2] else each for each in whole]
    found = find(scene(*read), bank())
    assert found.slowness is not None and found.slowness.ranks == (18, 19)
    extents = [Extent(len(text), text.count("\n"), ()) for text in texts.values()]
    sources = [each.source for each in read]
    slow = with_companions(found, job(tmp_path, texts), sources, extents).slowness
    assert slow is not None and slow.ranks == (17, 18, 19, 22)


def test_of_two_kinds_of_times_the_finer_tells_since_when() -> None:
    def timed(rank: int) -> str:
        work = [900 if rank == 5 and step >= 23 else 600 + step % 7 for step in range(60)]
        return "".join(
            f"{clock(2 * step)} INFO step {step} compute {work[step]}ms wait {10 if rank == 5 else 310}ms\n"
            for step in range(1, 60)
        )

    def table(step: int) -> str:
        rows = "".join(
            f"  rank {rank} fwd_bwd_ms {930 if rank == 5 and step >= 23 else 610} "
            f"wait_ms {10 if rank == 5 else 320}\n"
            for rank in range(16)
        )
        return f"{clock(2 * step)} per-rank times of step {step}\n{rows}"

    told = [of_rank(rank, timed(rank)) for rank in range(16)]
    told.append(reading("report.log", "".join(table(step) for step in range(2, 60, 8))))
    whole = scene(*told)
    found = compare(durations(whole, find(whole, bank()).topology))
    assert isinstance(found, Straggling) and found.ranks == (5,)
    assert found.since is not None and " step 23 " in found.since.text
