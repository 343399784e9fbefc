"""Who held the others up, by the flight recordings of a job that is played through by hand."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from recordings import Job, Step, a_job

from logtriage.artefacts.comparison import PROGRAM_FAULTS, Comparison, Fault
from logtriage.artefacts.flight_recorder import compare
from logtriage.artefacts.recording import Recording, RecordingFault, read_recording

REAL = Path(__file__).parent.parent / "fixtures" / "flight-recorder-gpu-error" / "dumps"


def recordings(job: Job, *, without: tuple[int, ...] = (), **how: Any) -> list[Recording]:
    return [
        read_recording(f"nccl_trace_rank_{rank}", pickle.dumps(job.dump(rank, **how), 2))
        for rank in job.ranks
        if rank not in without
    ]


def found(job: Job, **how: Any) -> Comparison:
    job.run()
    comparison = compare(recordings(job, **how))
    assert comparison is not None
    return comparison


# --- real dumps ------------------------------------------------------------------------------------


def test_real_dumps_name_both_ranks_with_a_gpu_error() -> None:
    read = [read_recording(path.name, path.read_bytes()) for path in sorted(REAL.iterdir())]
    comparison = compare(read)
    assert comparison is not None and comparison.fault is Fault.STALLED
    assert comparison.ranks == (12, 14) and len(comparison.recorded) == 16


@pytest.mark.parametrize("lost", range(16))
def test_a_dump_that_was_lost_moves_the_blame_to_nobody_else(lost: int) -> None:
    read = [
        read_recording(path.name, path.read_bytes())
        for path in sorted(REAL.iterdir())
        if path.name != f"_dump_{lost}"
    ]
    comparison = compare(read)
    assert comparison is not None
    assert set(comparison.ranks) >= {12, 14} - {lost} and set(comparison.ranks) <= {12, 14}


@pytest.mark.parametrize(
    ("job", "fault", "rank"), [("skipped-collective", Fault.CROSSED, 2), ("frozen-rank", Fault.ABSENT, 1)]
)
def test_real_dumps_of_a_backend_that_tells_no_states(job: str, fault: Fault, rank: int) -> None:
    """Gloo's recorder leaves every operation `scheduled`, has no list of ranks, and counts what failed."""
    dumps = sorted((REAL.parent.parent / f"flight-recorder-{job}" / "dumps").iterdir())
    comparison = compare([read_recording(path.name, path.read_bytes()) for path in dumps])
    assert comparison is not None and (comparison.fault, comparison.ranks) == (fault, (rank,))


def test_without_states_a_job_that_ended_well_shows_nothing() -> None:
    job = a_job(4, tensor=1, steps=3)
    job.run()
    read = []
    for rank in job.ranks:
        dump = job.dump(rank)
        for entry in dump["entries"]:
            entry |= {"state": "scheduled", "retired": True, "time_discovered_completed_ns": None}
        read.append(read_recording(f"trace_rank_{rank}", pickle.dumps(dump, 2)))
    assert not any(each.tells_completion for each in read) and compare(read) is None


# --- one fault in a job of many shapes ---------------------------------------------------------------

shapes = st.sampled_from([(4, 2, 1), (4, 1, 1), (8, 2, 1), (8, 2, 2), (8, 4, 1), (12, 2, 3)])


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Job, int, int]:
    """A job, one of its ranks, and a place in its program."""
    world, tensor, stages = draw(shapes)
    job = a_job(world, tensor=tensor, stages=stages, steps=3)
    rank = draw(st.integers(0, world - 1))
    return job, rank, draw(st.integers(2, len(job.ranks[rank].program) - 3))


@settings(max_examples=30, deadline=None)
@given(jobs(), st.booleans())
def test_a_rank_that_stands_still_is_found_behind_all_that_wait_for_it(
    case: tuple[Job, int, int], only_open: bool
) -> None:
    job, rank, at = case
    job.ranks[rank].freezes_at = at
    comparison = found(job, only_open=only_open)
    assert (comparison.fault, comparison.ranks) == (Fault.ABSENT, (rank,))


@settings(max_examples=20, deadline=None)
@given(jobs(), st.booleans())
def test_a_rank_that_no_longer_sees_its_gpu_is_found(case: tuple[Job, int, int], only_open: bool) -> None:
    job, rank, at = case
    job.ranks[rank].blind_from = at
    comparison = found(job, only_open=only_open)
    assert (comparison.fault, comparison.ranks) == (Fault.STALLED, (rank,))


@settings(max_examples=20, deadline=None)
@given(jobs(), st.booleans())
def test_a_rank_that_left_no_dump_is_evidence_by_itself(case: tuple[Job, int, int], only_open: bool) -> None:
    job, rank, at = case
    job.ranks[rank].freezes_at = at
    comparison = found(job, only_open=only_open, without=(rank,))
    assert (comparison.fault, comparison.ranks) == (Fault.NO_DUMP, (rank,))
    assert comparison.unrecorded == (rank,)


@settings(max_examples=30, deadline=None)
@given(jobs(), st.sampled_from(["skip", "other size", "other operation", "extra"]), st.booleans())
def test_a_program_that_left_the_common_path_is_a_desync_and_never_another_ranks_fault(
    case: tuple[Job, int, int], how: str, only_open: bool
) -> None:
    job, rank, at = case
    program = job.ranks[rank].program
    assert isinstance(program, list)
    step = program[at]
    assume(step.source is None and len(job.groups[step.group][1]) > 1)
    if how == "skip":
        del program[at]
    elif how == "extra":
        program.insert(at, step)
    else:
        name = "broadcast" if how == "other operation" else step.name
        program[at] = Step(step.group, name, (7,), step.dtype)
    comparison = found(job, only_open=only_open)
    assert comparison.fault in PROGRAM_FAULTS
    assert comparison.ranks in ((rank,), ())


@settings(max_examples=6, deadline=None)
@given(shapes, st.booleans())
def test_a_job_that_ran_through_shows_nothing(shape: tuple[int, int, int], only_open: bool) -> None:
    world, tensor, stages = shape
    job = a_job(world, tensor=tensor, stages=stages, steps=3)
    job.run()
    assert all(len(rank.issued) == len(rank.program) and not rank.open for rank in job.ranks.values())
    assert compare(recordings(job, only_open=only_open)) is None


@settings(max_examples=5, deadline=None)
@given(jobs(), st.randoms(use_true_random=False))
def test_the_order_of_the_files_changes_nothing(case: tuple[Job, int, int], shuffled: Any) -> None:
    job, rank, at = case
    job.ranks[rank].freezes_at = at
    job.run()
    read = recordings(job)
    mixed = list(read)
    shuffled.shuffle(mixed)
    assert compare(mixed) == compare(read)


# --- what is said ----------------------------------------------------------------------------------


def test_the_words_name_the_operation_the_group_and_who_waits() -> None:
    job = a_job(8)
    job.ranks[5].freezes_at = 13
    comparison = found(job)
    assert comparison.told.startswith(
        "rank 5 never joined all_reduce of [1] Float, number 4 of default_pg (0)"
    )
    assert comparison.told.endswith("in which ranks 0-4, 6, 7 wait")
    assert comparison.waiting == (0, 1, 2, 3, 4, 6, 7)
    assert comparison.there is not None and comparison.there.path == "/workspace/pretrain.py"
    assert comparison.here is not None and comparison.here.function == "training_step"
    assert [point.rank for point in comparison.points] == [5]


def test_expected_here_and_found_there() -> None:
    job = a_job(8)
    program = job.ranks[5].program
    assert isinstance(program, list)
    at = next(at for at, step in enumerate(program) if step.name == "all_reduce" and at > 4)
    program[at] = Step(program[at].group, "all_reduce", (9,), "Float", line=77)
    comparison = found(job)
    assert comparison.fault is Fault.MISMATCH and comparison.ranks == (5,)
    assert (
        "all_reduce of [4096] Float" in comparison.told
        and "all_reduce of [9] Float on rank 5" in comparison.told
    )
    assert comparison.here is not None and comparison.here.line == 77
    assert comparison.there is not None and comparison.there.line == 48


def test_a_collective_that_one_rank_alone_issues_is_that_ranks() -> None:
    """`if rank == 0: dist.all_reduce(...)` after the last step: the others are done."""
    job = a_job(8, steps=2)
    program = job.ranks[0].program
    assert isinstance(program, list)
    program.append(Step("0", "barrier", (1,)))
    comparison = found(job)
    assert (comparison.fault, comparison.ranks) == (Fault.ALONE, (0,))
    assert "only rank 0 issued barrier" in comparison.told


def test_all_joined_alike_blames_nobody() -> None:
    job = a_job(4, tensor=1, steps=3)
    job.run()
    for rank in job.ranks.values():
        rank.issued[-1].completed = rank.issued[-1].seen = False
    comparison = compare(recordings(job))
    assert comparison is not None
    assert (comparison.fault, comparison.ranks) == (Fault.JOINED, ())


def test_a_gpu_that_has_not_begun_what_runs_on_the_others_is_found() -> None:
    job = a_job(4, tensor=1, steps=3)
    job.run()
    for rank in job.ranks.values():
        rank.issued[-1].completed = rank.issued[-1].seen = False
    dumps = [job.dump(rank) for rank in job.ranks]
    for rank, dump in enumerate(dumps):
        dump["entries"][-1]["state"] = "scheduled" if rank == 2 else "started"
    comparison = compare(
        [read_recording(f"nccl_trace_rank_{rank}", pickle.dumps(dump, 2)) for rank, dump in enumerate(dumps)]
    )
    assert comparison is not None
    assert (comparison.fault, comparison.ranks) == (Fault.NOT_STARTED, (2,))


def test_a_dump_that_is_older_than_the_others_is_not_blamed() -> None:
    """Rank 1's was taken steps before; what its peers completed since cannot have gone without it."""
    early, late = a_job(8), a_job(8)
    early.ranks[1].freezes_at = 6
    early.run()
    late.ranks[6].freezes_at = 17
    late.run()
    read = [*recordings(late, without=(1,))]
    read.append(read_recording("nccl_trace_rank_1", pickle.dumps(early.dump(1), 2)))
    comparison = compare(read)
    assert comparison is not None
    assert comparison.ranks == (6,) and comparison.older == (1,)


def test_the_newest_of_several_dumps_of_a_rank_counts() -> None:
    early, late = a_job(4), a_job(4)
    early.ranks[0].freezes_at = 3
    early.run()
    late.ranks[2].freezes_at = 12
    late.run()
    both = [*recordings(early), *recordings(late)]
    comparison = compare(both)
    assert comparison is not None and comparison.ranks == (2,)


def test_a_dump_of_an_earlier_start_is_left_out() -> None:
    """Rank 3 left none this time; its old one has larger numbers."""
    job, before = a_job(8), a_job(8)
    job.ranks[6].freezes_at = 8
    before.ranks[1].freezes_at = 21
    job.run()
    before.run()
    old = before.dump(3)
    for entry in old["entries"]:
        entry["time_created_ns"] -= 2 * 3600 * 10**9
    read = [*recordings(job, without=(3,)), read_recording("nccl_trace_rank_3", pickle.dumps(old, 2))]
    comparison = compare(read)
    assert comparison is not None and comparison.ranks == (6,) and comparison.unrecorded == (3,)


def test_one_dump_alone_decides_nothing() -> None:
    job = a_job(4)
    job.ranks[2].freezes_at = 5
    job.run()
    assert compare(recordings(job, without=(1, 2, 3))) is None and compare([]) is None


def _bare(rank: int, *entries: dict[str, Any]) -> Recording:
    return read_recording(f"trace_{rank}", pickle.dumps({"version": "2.2", "entries": list(entries)}, 2))


def _transfer(record: int, title: str, sequence: int, state: str = "scheduled") -> dict[str, Any]:
    return {
        "record_id": record, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 0,
        "p2p_seq_id": sequence, "profiling_name": title, "state": state, "is_p2p": True, "input_sizes": [[4]],
        "output_sizes": [[4]], "time_created_ns": 1_790_000_000_000_000_000 + record,
    }  # fmt: skip


def test_a_receive_without_its_send_waits_for_the_sender() -> None:
    comparison = compare([_bare(0), _bare(1, _transfer(4, "nccl:recv 1<-0", 1))])
    assert comparison is not None
    assert (comparison.fault, comparison.ranks) == (Fault.ABSENT, (0,))


def test_the_parts_of_a_coalesced_launch_are_as_far_as_the_launch() -> None:
    """Parts have no events of their own: they stay `scheduled` when the launch is long completed."""
    done = [
        _bare(
            rank,
            _transfer(0, f"nccl:send {rank}->{1 - rank}", 1),
            _transfer(1, f"nccl:recv {rank}<-{1 - rank}", 1),
            _transfer(2, "nccl:coalesced", 1, "completed"),
        )
        for rank in (0, 1)
    ]
    assert compare(done) is None
    only_one = [done[0], _bare(1)]
    assert compare(only_one) is None, "a completed launch waits for nobody"
    waits = _bare(
        0,
        _transfer(0, "nccl:send 0->1", 1),
        _transfer(1, "nccl:recv 0<-1", 1),
        _transfer(2, "nccl:coalesced", 1, "started"),
    )
    comparison = compare([waits, _bare(1)])
    assert comparison is not None and comparison.ranks == (1,)


# --- forms and versions ----------------------------------------------------------------------------


def test_json_and_pickle_tell_the_same(tmp_path: Path) -> None:
    job = a_job(8, tensor=2, stages=2)
    job.ranks[6].freezes_at = 9
    job.run()
    job.write(tmp_path / "pickle")
    job.write(tmp_path / "json", "json")
    told = [
        compare(
            [read_recording(path.name, path.read_bytes()) for path in sorted((tmp_path / form).iterdir())]
        )
        for form in ("pickle", "json")
    ]
    assert told[0] is not None and told[1] is not None
    assert told[0].ranks == told[1].ranks == (6,) and told[0].told == told[1].told


def test_the_first_version_without_groups_is_compared_as_well() -> None:
    def dump(rank: int, numbers: range) -> Recording:
        entries = [
            {"record_id": n, "pg_id": 0, "seq_id": n, "profiling_name": "nccl:all_reduce",
             "input_sizes": [[8]], "output_sizes": [[8]], "state": "completed" if n < 5 else "scheduled",
             "time_created_ns": 1_790_000_000_000_000_000 + n, "frames": []}
            for n in numbers
        ]  # fmt: skip
        return read_recording(
            f"nccl_trace_rank_{rank}", pickle.dumps({"version": "1.1", "entries": entries}, 2)
        )

    comparison = compare([dump(0, range(1, 7)), dump(1, range(1, 7)), dump(2, range(1, 5))])
    assert comparison is not None
    assert (comparison.fault, comparison.ranks) == (Fault.ABSENT, (2,))


def test_of_a_long_recording_the_end_decides() -> None:
    """A ring of thousands of completed operations before those that tell."""
    job = a_job(4, steps=3)
    job.ranks[2].freezes_at = 6
    job.run()
    read = []
    for rank in job.ranks:
        dump = job.dump(rank)
        first = dump["entries"][0]
        before = [
            {**first, "record_id": n - 3000, "collective_seq_id": n - 3000, "state": "completed"}
            for n in range(3000)
        ]
        dump["entries"] = before + dump["entries"]
        read.append(read_recording(f"trace_rank_{rank}", pickle.dumps(dump, 2)))
    comparison = compare(read)
    assert comparison is not None and comparison.ranks == (2,)
    assert all(len(each.operations) < 1000 for each in read)


@pytest.mark.parametrize(
    "name",
    ["nccl_trace_rank_3", "comm_lib_trace_rank_3", "_dump_3", "trace.3", "node-17/rank3.pkl", "rank_3.json",
     "nccl_trace_rank_node-b_3", "nccl_trace_rank_3.pickle"],
)  # fmt: skip
def test_the_rank_is_told_by_the_name(name: str) -> None:
    job = a_job(8)
    job.run()
    assert read_recording(name, pickle.dumps(job.dump(3), 2)).rank == 3


def test_a_dump_whose_name_counts_something_else_is_told_by_its_groups() -> None:
    job = a_job(8, tensor=1)
    job.run()  # each rank is alone in its tensor parallel group
    assert read_recording("dump_00071", pickle.dumps(job.dump(3), 2)).rank == 3


@pytest.mark.parametrize(
    "data", [b"{", b"{}", b'{"entries": 5}', b"\x80\x02]q\x00.", b'{"pg_config": {"0": 1}}', b"[" * 100_000]
)
def test_what_is_no_recording_is_a_fault_in_words(data: bytes) -> None:
    from logtriage.artefacts.pickles import PickleFault

    with pytest.raises((RecordingFault, PickleFault)) as fault:
        read_recording("trace", data)
    assert str(fault.value)


ODD: tuple[Any, ...] = (
    None, True, -1, 10**400, 1.5, "", "x", "nccl:", "nccl:send 9->9", [], [[]], [None], {},
    {"a": []}, ["0"], [[[1]]],
)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_wrong_values_anywhere_end_no_comparison(seed: int) -> None:
    chance = random.Random(seed)
    job = a_job(4, steps=2)
    job.ranks[1].freezes_at = 4
    job.run()
    for _ in range(25):
        dumps = [json.loads(json.dumps(job.dump(rank))) for rank in job.ranks]
        for _ in range(chance.randint(1, 5)):
            target: Any = chance.choice(dumps)
            while True:  # any place in it, its own containers included
                keys = list(target) if isinstance(target, dict) else list(range(len(target)))
                if not keys:
                    break
                key = chance.choice(keys)
                if isinstance(target[key], dict | list) and chance.random() < 0.7:
                    target = target[key]
                    continue
                target[key] = copy.deepcopy(chance.choice(ODD))
                break
        read = []
        for rank, dump in enumerate(dumps):
            try:
                read.append(read_recording(f"trace_rank_{rank}", json.dumps(dump).encode()))
            except RecordingFault:
                continue
        compare(read)
