"""What a job survived is no cause, what another did is not its own; an indication is a whole record."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, findings, judged, of_rank, reading, steps, traceback

from logtriage.diagnose.indications import indications
from logtriage.diagnose.offline import decide
from logtriage.model import SourceRole

CAUGHT = traceback("TimeoutError: [Errno 110] Connection timed out")
FATAL = traceback("KeyError: 'tokens'")


def test_an_exception_that_a_warning_reports_gives_way_to_one_that_nobody_caught() -> None:
    retried = f"{clock(61)} WARNING reader: retry 1/5 after error, backing off\n{CAUGHT}"
    went_on = f"{clock(61.5)} INFO reader: opened the next part\n"
    found = findings(of_rank(0, steps(30) + retried + went_on), of_rank(1, steps(30) + FATAL))
    decision = decide(found)
    assert (decision.failure_type, decision.culprits.ranks) == ("code.key", (1,))


def test_an_exception_below_a_last_retry_still_counts() -> None:
    retried = f"{clock(61)} WARNING reader: retry 5/5 after error, giving up\n{CAUGHT}"
    found = findings(of_rank(0, steps(30) + retried), of_rank(1, steps(30)))
    assert decide(found).failure_type == "network.connection"


def test_a_retry_that_succeeded_was_survived() -> None:
    said = f"{clock(61)} ERROR reader: read failed\n{CAUGHT}{clock(62)} INFO reader: retry succeeded\n"
    (caught,) = (
        each for each in findings(of_rank(0, steps(30) + said)).candidates if each.record is not None
    )
    assert caught.recovered


HALTED = "I feed: second go was fine\n"


def habitual(rank: int, last: str) -> str:
    """A rank that met the same exception early and late, in words that no rule knows."""
    early = f"{clock(21)} W feed: went wrong\n{CAUGHT}{clock(21.1)} {HALTED}"
    return steps(10) + early + steps(20, first=11, at=22) + (last if rank == 0 else "")


def test_what_was_survived_time_and_again_is_so_once_more_if_the_same_follows_it() -> None:
    late = f"{clock(61)} W feed: went wrong\n{CAUGHT}"
    for after, recovered in ((f"{clock(61.1)} {HALTED}", True), ("", False), (f"{clock(61.1)} bye\n", False)):
        found = findings(*(of_rank(rank, habitual(rank, late + after)) for rank in range(4)))
        caught = [each for each in found.candidates if each.record is not None and each.rank == 0]
        assert [each.recovered for each in caught] == [True, recovered]


RETRYING = "WARNING saver: no state (OSError: [Errno 28] No space left on device), retrying 1/3\n"


def test_an_error_that_is_tried_again_and_then_well_ended_nothing() -> None:
    saved = "INFO saver: state of 15 GiB saved to /out/last\nINFO saver: training finished\n"
    (told,) = findings(of_rank(0, steps(30) + RETRYING + saved)).candidates
    assert told.recovered


def test_an_error_that_is_tried_again_in_vain_is_one() -> None:
    failed = "ERROR saver: giving up on the state after 3 tries\nINFO saver: log saved\n"
    told = findings(of_rank(0, steps(30) + RETRYING + failed)).candidates
    assert decide(findings(of_rank(0, steps(30) + RETRYING + failed))).failure_type == "host.disk_full"
    assert not any(each.recovered for each in told)


def test_the_end_of_another_job_in_a_controllers_log_is_not_this_jobs() -> None:
    controller = "".join(
        f"[2026-01-31T08:0{number}:00.000] _job_complete: JobId={91000 + number} WEXITSTATUS 0\n"
        f"[2026-01-31T08:0{number}:00.100] _job_complete: JobId={91000 + number} done\n"
        for number in range(5)
    )
    found = findings(
        reading("slurm-77001.out", steps(40)),
        reading("slurmctld.log", controller, SourceRole.SCHEDULER),
    )
    assert decide(found).failure_type == "none.running"


def test_a_number_that_is_another_jobs_by_chance_makes_that_job_not_ones_own() -> None:
    controller = "".join(
        f"[2026-01-31T08:0{number}:00.000] _job_complete: JobId={91000 + number} WEXITSTATUS 0\n"
        for number in range(5)
    )
    chance = f'{clock(81)} INFO {{"event": "step_end", "sample": 91003}}\n'
    found = findings(
        reading("slurm-77001.out", "job tune id 77001 nodes 2\n" + steps(40)),
        of_rank(0, steps(40) + chance),
        reading("slurmctld.log", controller, SourceRole.SCHEDULER),
    )
    assert decide(found).failure_type == "none.running"


@pytest.mark.parametrize(
    ("gave", "took", "kind"),
    [(77001, 91001, "scheduler.preempted"), (91001, 77001, "none.running")],
)
def test_who_gave_its_nodes_to_another_job_was_preempted_and_not_who_took_them(
    gave: int, took: int, kind: str
) -> None:
    numbers = range(91003, 91007)
    others = "".join(f"[2026-01-31T08:00:00.000] sched: Allocate JobId={number}\n" for number in numbers)
    told = f"preempted JobId={gave} has been requeued to reclaim resources for JobId={took}"
    found = findings(
        reading("slurm-77001.out", "job tune id 77001 nodes 2\n" + steps(40)),
        reading("slurmctld.log", f"{others}[2026-01-31T08:01:20.000] {told}\n", SourceRole.SCHEDULER),
    )
    assert decide(found).failure_type == kind


def test_nodes_that_wrote_at_the_same_time_are_no_runs_that_follow_each_other() -> None:
    beside = "".join(f"{clock(2.0 * beat)} INFO pool: page moved\n" for beat in range(30))
    found = findings(
        reading("log-tune_70411_0.out", steps(30) + FATAL),
        reading("log-tune_70411_1.out", beside + steps(3, first=30, at=58.5)),
    )
    assert decide(found).failure_type == "code.key"
    later = reading("log-tune_70411_1.out", steps(30, first=30, at=900))
    assert (
        decide(findings(reading("log-tune_70411_0.out", steps(30) + FATAL), later)).failure_type
        == "none.running"
    )


def test_every_line_of_a_traceback_is_an_indication() -> None:
    found = findings(of_rank(0, steps(30)), of_rank(1, steps(30) + FATAL))
    told = [each.line for each in indications(found, decide(found)) if each.file == "rank1.log"]
    assert told == [31, 32, 33, 34]


def test_a_job_that_goes_well_has_no_indications() -> None:
    said = f"{clock(10)} WARNING reader: retry 1/5 after error\n{CAUGHT}"
    found = findings(of_rank(0, said + steps(60, at=12.0)))
    assert indications(found, decide(found)) == ()


def test_what_followed_is_an_indication_but_no_cause(tmp_path: Path) -> None:
    """Lines that state a failure of their own (a lost peer) are symptoms where another brought it about."""
    lost = (
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote "
        "process exited or there was a network error, NCCL version 2.26.2\n"
    )
    fault = "RuntimeError: CUDA error: an illegal memory access was encountered"
    files = {
        "rank0.log": steps(40) + f"{clock(84)} {lost}",
        "rank1.log": steps(40) + traceback(fault),
    }
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "cuda.illegal_memory_access"
    roles = {(each.file, each.failure_type): each.role for each in verdict.indications}
    assert roles["rank0.log", "collective.remote_error"] == "symptom"
    assert roles["rank1.log", "cuda.illegal_memory_access"] == "cause"
