"""The rank or host that wrote more, or less, of the same than all others, since some time."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import clock

from logtriage.pipeline import triage
from logtriage.report.document import Verdict

RANKS, HOSTS, STEPS = 32, 8, 500
TIMED_OUT = (
    "[rank{rank}]:[E131 08:55:00.{rank:03d}123 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=4811, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024,"
    " Timeout(ms)=1800000) ran for 1800044 milliseconds before timing out.\n"
)
# How many of the pool's notes a rank writes at a step.
Notes = Callable[[int, int], int]


def job(folder: Path, notes: Notes, table: int | None = None, *, of_hosts: bool = False) -> Verdict:
    """A job of which every rank waits in vain in the same collective, each beside some notes of its pool.

    Each rank has its file, or each host one for all of its ranks.
    """
    for rank in range(RANKS):
        dice = random.Random(rank)
        lines = []
        for step in range(STEPS):
            at = clock(2.0 * step)
            lines.append(f"{at} INFO step {step} loss 2.{dice.randrange(999):03d} lr 1e-4\n")
            lines += [f"{at} INFO pool buffer {dice.randrange(9999)} was moved\n"] * notes(rank, step)
            if table == rank and step % 50 == 0 and step > 100:
                lines += [f"{at} INFO timers rank {each} forward {step}.{each}\n" for each in range(RANKS)]
        lines.append(TIMED_OUT.format(rank=rank))
        path = folder / f"node{rank * HOSTS // RANKS:02d}" / ("job.log" if of_hosts else f"rank_{rank}.log")
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text().splitlines(keepends=True) if path.exists() else []
        path.write_text("".join(sorted((*before, *lines), key=_order)))
    return triage(folder, offline=True, workers=1)


def _order(line: str) -> str:
    return "~" if line.startswith("[rank") else line[:23]


def usual(rank: int, step: int) -> int:
    return (step * 7 + rank * 13) % 23 == 0


def test_a_rank_that_wrote_many_more_of_the_same_since_the_middle_is_named(tmp_path: Path) -> None:
    verdict = job(tmp_path, lambda rank, step: 2 if rank == 11 and step > 400 else usual(rank, step))
    assert verdict.verdict.failure_type == "collective.timeout"
    assert verdict.verdict.culprits.ranks == (11,)
    assert verdict.verdict.culprits.hosts == ("node02",)
    cited = next(each for each in verdict.verdict.evidence if "was moved" in each.text)
    assert cited.file == "node02/rank_11.log"


def test_a_rank_that_no_longer_wrote_what_all_write_is_named(tmp_path: Path) -> None:
    verdict = job(tmp_path, lambda rank, step: 0 if rank == 5 and step > 300 else 1)
    assert verdict.verdict.culprits.ranks == (5,)


def test_a_host_all_of_whose_ranks_wrote_more_is_named(tmp_path: Path) -> None:
    verdict = job(tmp_path, lambda rank, step: 2 if rank // 4 == 1 and step > 350 else usual(rank, step))
    assert verdict.verdict.culprits.hosts == ("node01",)
    assert verdict.verdict.culprits.ranks == ()


def test_a_host_of_which_one_file_tells_is_named_as_well(tmp_path: Path) -> None:
    verdict = job(
        tmp_path, lambda rank, step: 2 if rank // 4 == 6 and step > 350 else usual(rank, step), of_hosts=True
    )
    assert verdict.verdict.culprits.hosts == ("node06",)


@pytest.mark.parametrize(
    "notes",
    [
        usual,
        lambda rank, step: 3 if rank == 3 else usual(rank, step),  # it always did
        lambda rank, step: 3 if 200 < step < 260 and rank == 3 else usual(rank, step),  # and came back
        lambda rank, step: 2 if step > 400 else usual(rank, step),  # all of them
        lambda rank, step: 2 if step > 400 and rank % 2 else usual(rank, step),  # half of them
        lambda rank, step: random.Random(rank * 9001 + step // 40).choice([0, 0, 0, 2]),  # in bursts
        lambda rank, step: 3 if rank == 0 and step > 400 and step % 100 == 1 else usual(rank, step),  # a few
    ],
)
def test_who_did_as_others_or_as_ever_is_not_named(tmp_path: Path, notes: Notes) -> None:
    verdict = job(tmp_path, notes, table=15)
    assert verdict.verdict.culprits.ranks == ()
    assert verdict.verdict.culprits.hosts == ()
