"""Who is odd where the others say nothing, or say it of somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import WATCHDOG, bank_read_once, clock, first, judged


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def batches(count: int, total: int) -> str:
    return "".join(f"{clock(2.0 * at)} INFO step {at}/{total} loss 2.{at}\n" for at in range(1, count + 1))


@pytest.mark.parametrize(("count", "more"), [(4, 3), (6, 1)])
def test_who_has_more_steps_than_its_peers_waits_for_them_alone(
    tmp_path: Path, count: int, more: int
) -> None:
    files = {f"rank{rank}.log": batches(12, 12) + f"{clock(30)} INFO leaving\n" for rank in range(count)}
    files[f"rank{more}.log"] = batches(13, 14) + WATCHDOG.format(rank=more, op="ALLREDUCE")
    verdict = judged(tmp_path, files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("collective.desync", (more,))
    assert "step 13/14" in first(verdict)[1]


def test_where_the_others_are_not_done_they_may_be_missing(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": batches(7, 12) for rank in range(4)}
    files["rank3.log"] = batches(7, 12) + WATCHDOG.format(rank=3, op="ALLREDUCE")
    assert judged(tmp_path, files).verdict.failure_type == "collective.timeout"


def host(number: int, version: str, warning: str) -> str:
    head = f"nd-{number}:31:90 [0] NCCL INFO "
    return (
        f"{head}Bootstrap : Using eth0:10.9.1.{number}<0>\nNCCL version {version}+cuda12.4\n"
        f"{head}comm 0x55{number} rank {number} nranks 3 cudaDev 0 nvmlDev 0 busId 1000 - Init START\n"
        f"nd-{number}:31:90 [0] {warning}\n"
    )


TRUNCATED = "bootstrap.cc:81 NCCL WARN Message truncated : received 320 bytes instead of 8"
CLOSED = "misc/socket.cc:52 NCCL WARN socketProgress: Connection closed by remote peer nd-0<40111>"


def test_the_host_with_another_nccl_is_the_one_that_its_peers_do_not_understand(tmp_path: Path) -> None:
    versions = ["2.21.5", "2.21.5", "2.19.4"]
    warnings = [TRUNCATED, TRUNCATED, CLOSED]
    files = {f"nd-{n}.log": host(n, versions[n], warnings[n]) for n in range(3)}
    verdict = judged(tmp_path / "odd", files).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("collective.init", ("nd-2",))
    assert any("NCCL version 2.19.4" in each.text for each in verdict.evidence)
    alike = {f"nd-{n}.log": host(n, "2.21.5", warnings[n]) for n in range(3)}
    assert "nd-2" not in judged(tmp_path / "alike", alike).verdict.culprits.hosts


def course(rank: int, *, is_whole: bool = True) -> str:
    """What a rank tells of its work, in words that count no steps."""
    said = f"{clock(0)} INFO rank {rank} is up\n" + "".join(
        f"{clock(10 * n)} INFO pulling records\n{clock(10 * n + 2)} INFO activations\n" for n in range(1, 6)
    )
    return said + f"{clock(61)} INFO pulling records\n" + f"{clock(62)} INFO activations\n" * is_whole


LOOK = "2026-01-31 08:01:02.500 +0000\n 14:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n"


@pytest.mark.parametrize("late", [2, 4])
def test_whose_course_breaks_off_where_its_peers_went_on_is_waited_for(tmp_path: Path, late: int) -> None:
    files = {f"rank{rank}.log": course(rank, is_whole=rank != late) for rank in range(1, 6)}
    reports = "".join(f"{clock(10 * n + 3)} INFO step {n} loss 2.{n}\n" for n in range(1, 6))
    files["rank0.log"] = course(0) + reports + f"{clock(7200)} INFO heartbeat\n" * 4
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("hang.silent", (late,))
    assert verdict.evidence[0].file == f"rank{late}.log"


def test_courses_that_all_differ_tell_of_nobody(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": course(rank) + f"{clock(70)} INFO kept {'ab' * rank}\n" for rank in range(1, 6)
    }
    files["rank3.log"] = course(3, is_whole=False)
    reports = "".join(f"{clock(10 * n + 3)} INFO step {n} loss 2.{n}\n" for n in range(1, 6))
    files["rank0.log"] = course(0) + reports + f"{clock(7200)} INFO heartbeat\n" * 4
    assert judged(tmp_path, files).verdict.culprits.ranks == ()


def test_what_the_silent_rank_was_about_to_do_is_cited_before_a_third_complaint(tmp_path: Path) -> None:
    begun = f"{clock(1)} INFO the index is mapped\n{clock(9)} INFO weights are unpacked\n"
    files = {
        f"rank{rank}.log": begun
        + f"{clock(20)} INFO all is unpacked\n"
        + WATCHDOG.format(rank=rank, op="BROADCAST")
        for rank in range(1, 5)
    }
    files["rank0.log"] = begun + "ERROR:composer.cli.launcher:Rank 1 crashed with exit code -6.\n"
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.timeout", (0,))
    assert ("rank0.log", 2) in [(each.file, each.line) for each in body.evidence[:3]]
