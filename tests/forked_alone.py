"""Work shared out to copies of the process: the same results, whoever did it and whatever became of them.

No copies are made beside other threads, which pytest-xdist has: `test_forks` runs this by itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from logtriage import forks, pipeline
from logtriage.forks import as_done, shared_out
from logtriage.intake import reading
from logtriage.intake.folder import discover
from logtriage.mining import survey
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def where(at: int) -> tuple[int, int]:
    deadline = threading.Event()
    deadline.wait(0.01)  # long enough for all to get some
    return at, os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 3, 50])
def test_all_is_done_once_and_in_order(processes: int) -> None:
    found = shared_out(where, 40, processes)
    assert [at for at, _ in found] == list(range(40))
    assert len({process for _, process in found}) <= processes


def test_copies_take_their_part() -> None:
    assert len({process for _, process in shared_out(where, 40, 2)}) == 2


@pytest.mark.parametrize("processes", [1, 3])
def test_what_is_to_be_done_meanwhile_is_done_here_and_once(processes: int) -> None:
    done: list[int] = []
    found = shared_out(where, 40, processes, lambda: done.append(os.getpid()))
    assert done == [os.getpid()]
    assert [at for at, _ in found] == list(range(40))


def test_copies_are_at_work_meanwhile() -> None:
    found = shared_out(where, 8, 2, lambda: threading.Event().wait(2.0) and None)
    assert {process for _, process in found}.isdisjoint({os.getpid()})


def test_a_fault_meanwhile_leaves_no_copy() -> None:
    def fails() -> None:
        raise ValueError("no bank")

    with pytest.raises(ValueError, match="no bank"):
        shared_out(where, 40, 2, fails)


def test_nothing_to_do_gives_nothing() -> None:
    assert shared_out(where, 0, 4) == []


def test_what_a_copy_that_was_killed_left_undone_is_done_here() -> None:
    here = os.getpid()

    def work(at: int) -> int:
        if os.getpid() != here and at > 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return at * at

    assert shared_out(work, 30, 3) == [at * at for at in range(30)]


def test_a_copy_that_hangs_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE_SECONDS", 0.2)
    here = os.getpid()

    def work(at: int) -> int:
        if os.getpid() != here:
            threading.Event().wait()
        where(at)
        return at

    assert shared_out(work, 10, 2) == list(range(10))


def test_what_cannot_be_sent_is_done_here() -> None:
    found = shared_out(lambda at: lambda: at, 10, 2)
    assert [each() for each in found] == list(range(10))


def test_an_error_is_that_of_the_work() -> None:
    def work(at: int) -> int:
        if at == 7:
            raise LookupError("seven")
        return at

    with pytest.raises(LookupError, match="seven"):
        shared_out(work, 20, 2)


def test_beside_other_threads_no_copy_is_made() -> None:
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        assert {process for _, process in shared_out(where, 10, 4)} == {os.getpid()}
    finally:
        ended.set()
        other.join()


@pytest.mark.parametrize("fixture", ["two-nodes-segfault", "torchrun-short-shard", "completed-scary-words"])
def test_a_verdict_is_the_same_whoever_read_the_lines(fixture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(__file__).parent.parent / "fixtures" / fixture / "logs"
    alone = pipeline.triage(folder, offline=True, workers=1)
    monkeypatch.setattr(reading, "SHARED_BYTES", 0)
    together = pipeline.triage(folder, offline=True, workers=3)
    assert together.model_dump(exclude={"timing"}) == alone.model_dump(exclude={"timing"})


def test_many_files_are_found_alike_by_one_process_and_by_several(tmp_path: Path) -> None:
    for rank in range(150):
        log = tmp_path / f"node{rank // 8}" / f"rank{rank}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"2026-01-05 10:00:00 [rank{rank}] step 1 loss 2.5\n" * 20)
    (tmp_path / "core.bin").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "broken.log.gz").write_bytes(b"\x1f\x8b\x08\x00torn")
    assert discover(tmp_path, processes=3) == discover(tmp_path)


def test_no_copy_is_made_for_a_small_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a copy of the process for some lines")

    monkeypatch.setattr(forks.multiprocessing, "get_context", refused)
    folder = Path(__file__).parent.parent / "fixtures" / "two-nodes-segfault" / "logs"
    assert pipeline.triage(folder, offline=True, workers=4).verdict.failure_type == "process.native_crash"


def test_results_come_as_they_are_done_and_an_idle_parent_does_none() -> None:
    def work(at: int) -> tuple[int, int]:
        threading.Event().wait(0.5 if at == 0 else 0.01)
        return at, os.getpid()

    came = list(as_done(work, 8, 2, lambda: True, is_idle=True))
    assert sorted(at for at, _ in came) == list(range(8))
    assert came[-1][0] == 0
    assert os.getpid() not in {process for _, (_, process) in came}


def test_what_idle_copies_that_were_killed_left_undone_is_done_by_the_parent() -> None:
    here = os.getpid()

    def work(at: int) -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return at + 1

    assert dict(as_done(work, 6, 2, lambda: True, is_idle=True)) == {at: at + 1 for at in range(6)}


def test_what_is_not_waited_for_is_left_out() -> None:
    def work(at: int) -> int:
        if at == 1:
            threading.Event().wait()
        return at

    asked = iter([True] * 5)
    came = list(as_done(work, 4, 2, lambda: next(asked, False), is_idle=True))
    assert sorted(at for at, _ in came) == [0, 2, 3]


def test_large_results_do_not_wait_for_a_parent_that_is_busy() -> None:
    def work(at: int) -> bytes:
        threading.Event().wait(0.05)
        return bytes(4 << 20) + bytes([at])

    assert [each[-1] for each in shared_out(work, 9, 3)] == list(range(9))


def test_elsewhere_than_on_linux_a_job_is_read_by_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(4):
        lines = (f"2026-01-05 10:00:{at % 60:02d} [rank{rank}] step {at} loss 2.5\n" for at in range(9_000))
        (tmp_path / f"rank{rank}.log").write_text("".join(lines))
    found = discover(tmp_path)
    matcher = Matcher(load_bank())
    alone = survey.survey(found.root, found.sources, matcher, workers=1)
    monkeypatch.setattr(survey, "PARALLEL_BYTES", 1)
    monkeypatch.setattr(forks, "START", "spawn")
    spawned: list[str] = []
    get_context = forks.multiprocessing.get_context
    monkeypatch.setattr(
        forks.multiprocessing, "get_context", lambda name: spawned.append(name) or get_context(name)
    )
    together = survey.survey(found.root, found.sources, matcher, workers=2)
    assert set(spawned) == {"spawn"}
    assert together.summaries == alone.summaries
