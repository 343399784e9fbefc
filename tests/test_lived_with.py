"""What a job lived with: in several files long before its end, or in earlier good runs; how it took leave."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, job, judged, steps, traceback

from logtriage.pipeline import triage

WARNED = (
    "gpu-1:10:11 [1] misc/ibvwrap.cc:282 NCCL WARN Call to ibv_modify_qp failed with error No such device\n"
)


def warned(at: float) -> str:
    return f"[{clock(at)[:19]}] {WARNED}"


def test_a_warning_that_several_ranks_had_long_before_is_no_cause(tmp_path: Path) -> None:
    quiet = f"{clock(130)} DEBUG heartbeat\n"
    files = {f"rank{rank}.log": warned(5) + quiet for rank in range(1, 5)}
    verdict = judged(tmp_path, {"rank0.log": steps(70), **files}).verdict
    assert verdict.failure_type == "none.running"


def test_a_warning_that_one_rank_alone_had_at_the_end_still_counts(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": f"{clock(5)} DEBUG heartbeat\n" for rank in range(1, 4)}
    verdict = judged(tmp_path, {"rank0.log": steps(70), **files, "rank4.log": warned(139)}).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("network.infiniband", (4,))


def test_a_warning_that_a_good_run_had_as_well_is_no_cause(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": steps(70) + (warned(141) if rank == 2 else "") for rank in range(4)}
    good = {f"rank{rank}.log": steps(30) + (warned(61) if rank == 1 else "") + steps(30, first=31, at=62)
            for rank in range(4)}  # fmt: skip
    now, before = job(tmp_path / "now", files), job(tmp_path / "before", good)
    assert triage(now, offline=True).verdict.failure_type == "network.infiniband"
    assert triage(now, offline=True, history=[before]).verdict.failure_type.startswith("none.")


@pytest.mark.parametrize(
    ("leave", "noted", "kind"),
    [
        ("INFO so long\n", "== run 7: ended: 0 ==\n", "none.completed"),
        ("INFO so long\n", "%% run 7 status=0\n", "none.completed"),
        ("INFO so long\n", "== run 7: ended: 1 ==\n", "none.running"),
        ("INFO so long\n", "== run 7 begins\n", "none.running"),
        ("", "== run 7: ended: 0 ==\n", "none.running"),
        ("INFO waiting for peers\n", "== run 7: ended: 0 ==\n", "none.running"),
    ],
)
def test_who_takes_leave_behind_the_last_step_is_done_where_its_starter_notes_a_zero(
    tmp_path: Path, leave: str, noted: str, kind: str
) -> None:
    said = f"{clock(61)} {leave}" if leave else ""
    files = {f"rank{rank}.log": steps(30) + said for rank in range(2)}
    verdict = judged(tmp_path, {**files, "slurm-7.out": f"== run 7 of me\n+ srun x\n{noted}"}).verdict
    assert verdict.failure_type == kind


LOST = (
    "[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a "
    "network error\n"
)
CLEARED = (
    "W0131 08:01:05.000000 77 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 9 "
    "closing signal SIGTERM\n"
)


def test_who_clears_away_after_an_exception_did_not_cause_it(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": steps(30)
        + (traceback("feed.NotAsWritten: 77") if rank == 1 else f"{clock(70)} ERROR {LOST.format(rank=rank)}")
        for rank in range(4)
    }
    body = judged(tmp_path, {**files, "launcher.log": CLEARED}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.runtime", (1,))


RESET = traceback("ConnectionResetError: [Errno 104] Connection reset by peer", "pull", "/app/source.py")


def pulled(rank: int, at: float) -> str:
    """An exception without a time of its own, and the line that always follows it, in words of nobody."""
    return f"{clock(at)} source {rank} stumbled\n{RESET}{clock(at + 0.1)} source {rank} on its feet\n"


@pytest.mark.parametrize(("others", "kind"), [(4, "none.running"), (0, "network.connection")])
def test_an_undated_exception_behind_which_the_same_line_always_stands_was_lived_with(
    tmp_path: Path, others: int, kind: str
) -> None:
    early = {f"rank{rank}.log": pulled(rank, 5) + steps(60, at=6) for rank in range(1, 1 + others)}
    files = {"rank0.log": steps(62) + pulled(0, 125), **early}
    assert judged(tmp_path, files).verdict.failure_type == kind


def test_a_last_error_that_several_files_had_and_went_on_is_usual(tmp_path: Path) -> None:
    def written(rank: int, last: str) -> str:
        lost = f"{clock(5)} ERROR gauges of {rank} were lost on their way\n"
        return lost + steps(110, at=6) + last

    last = f"{clock(227)} ERROR gauges of 2 were lost on their way\n"
    files = {f"rank{rank}.log": written(rank, last if rank == 2 else "") for rank in range(4)}
    assert judged(tmp_path / "usual", files).verdict.failure_type == "none.running"
    alone = {f"rank{rank}.log": steps(110, at=6) + (last if rank == 2 else "") for rank in range(4)}
    assert judged(tmp_path / "alone", alone).verdict.failure_type != "none.running"
