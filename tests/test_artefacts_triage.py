"""Dumps in the folder of a job: what they decide, what stands above them, and that nothing in them is run."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from recordings import Job, Step, a_job

from logtriage import triage
from logtriage.intake.folder import NothingReadable
from logtriage.report.document import Verdict

REAL = Path(__file__).parent.parent / "fixtures" / "flight-recorder-gpu-error" / "dumps"

TIMEOUT = (
    "[rank{rank}]:[E921 14:16:0{rank}.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)


def frozen(rank: int = 5, at: int = 13) -> Job:
    job = a_job(8)
    job.ranks[rank].freezes_at = at
    job.run()
    return job


def logs(job: Job, folder: Path, *, error: bool = True, hosts: bool = False) -> None:
    """One log a rank: steps, and the watchdog's complaint of every rank with an open operation."""
    for rank, one in job.ranks.items():
        lines = [
            f"2026-09-21 14:0{step // 60}:{step % 60:02d} step {step}/1000 loss 2.31\n" for step in range(90)
        ]
        if error and one.open:
            lines.append(TIMEOUT.format(rank=rank, number=one.open[0].sequence))
        place = folder / (f"node-{rank // 4}" if hosts else ".") / f"rank{rank}.log"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(lines))


def check_cited(verdict: Verdict, folder: Path) -> None:
    for line in verdict.verdict.evidence:
        there = (folder / line.file).read_bytes().split(b"\n")[line.line - 1].decode()
        assert line.text and there.startswith(line.text)


def test_dumps_alone_name_the_rank_and_cite_no_line(tmp_path: Path) -> None:
    frozen().write(tmp_path / "fr")
    verdict = triage(tmp_path, offline=True)
    body = verdict.verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.timeout", (5,))
    assert body.evidence == (), "a pickle has no lines"
    assert "rank 5 never joined" in body.summary and "flight recordings of 8 ranks" in body.summary
    assert [(entry.file, entry.rank, entry.kind) for entry in verdict.timeline] == [
        ("fr/nccl_trace_rank_5", 5, "cause")
    ]
    assert verdict.job.ranks == 8 and verdict.mining.files == 8 and verdict.job.outcome == "failed"


@pytest.mark.parametrize("form", ["json", "pretty"])
def test_of_dumps_in_json_the_lines_are_cited(tmp_path: Path, form: str) -> None:
    frozen().write(tmp_path, form)
    verdict = triage(tmp_path, offline=True)
    assert verdict.verdict.culprits.ranks == (5,)
    assert [(line.file, line.rank) for line in verdict.verdict.evidence] == [
        ("nccl_trace_rank_0.json", 0), ("nccl_trace_rank_5.json", 5)
    ]  # fmt: skip
    check_cited(verdict, tmp_path)
    if form == "pretty":
        assert all('"profiling_name"' in line.text for line in verdict.verdict.evidence)


def test_real_dumps_in_an_archive(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "job"), "gztar", REAL)
    body = triage(tmp_path / "job.tar.gz", offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.timeout", (12, 14))


def test_a_timeout_in_the_text_gets_its_rank_from_the_dumps(tmp_path: Path) -> None:
    """By the text alone rank 5 is one of two that are silent; the dumps decide."""
    job = frozen()
    logs(job, tmp_path)
    (tmp_path / "rank2.log").write_text((tmp_path / "rank5.log").read_text())
    before = triage(tmp_path, offline=True).verdict
    assert before.failure_type == "collective.timeout" and before.culprits.ranks != (5,)
    job.write(tmp_path / "dumps")
    verdict = triage(tmp_path, offline=True)
    body = verdict.verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.timeout", (5,))
    assert body.evidence and "Watchdog caught collective operation timeout" in body.evidence[0].text
    assert not any("TORCH_NCCL_TRACE_BUFFER_SIZE" in each for each in body.collect_next)
    check_cited(verdict, tmp_path)


def test_a_timeout_whose_ranks_ran_different_programs_is_a_desync(tmp_path: Path) -> None:
    job = a_job(8)
    program = job.ranks[5].program
    assert isinstance(program, list)
    program[10] = Step(program[10].group, "all_reduce", (9,), "Float", line=77)
    job.run()
    logs(job, tmp_path)
    job.write(tmp_path / "dumps")
    body = triage(tmp_path, offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.desync", (5,))
    assert "on rank 5" in body.summary and "pretrain.py:77" in body.summary
    assert body.evidence


def test_a_silent_log_and_dumps_are_a_silent_hang_with_its_rank(tmp_path: Path) -> None:
    job = frozen()
    logs(job, tmp_path, error=False)
    job.write(tmp_path / "dumps")
    body = triage(tmp_path, offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("hang.silent", (5,))


def test_a_fault_of_the_machine_stands_above_the_dumps(tmp_path: Path) -> None:
    job = frozen()
    logs(job, tmp_path, hosts=True)
    job.write(tmp_path / "dumps")
    (tmp_path / "node-1" / "dmesg.log").write_text(
        "2026-09-21T14:05:30,0+00:00 NVRM: Xid (PCI:0000:c1:00): 79, pid=41, GPU has fallen off the bus\n"
    )
    body = triage(tmp_path, offline=True).verdict
    assert body.failure_type == "gpu.fell_off_bus" and body.culprits.hosts == ("node-1",)
    assert body.culprits.ranks == (5,), "the kernel names the GPU, the dumps whose it was"


def test_a_doubtful_complaint_of_another_machine_does_not(tmp_path: Path) -> None:
    """Rank 5 runs on node-1; a link of node-0 that flapped is no reason."""
    job = frozen()
    logs(job, tmp_path, hosts=True)
    (tmp_path / "node-0" / "dmesg.log").write_text(
        "2026-09-21T14:05:30,0+00:00 mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged\n"
    )
    before = triage(tmp_path, offline=True).verdict
    assert before.failure_type == "network.infiniband" and before.culprits.hosts == ("node-0",)
    job.write(tmp_path / "dumps")
    body = triage(tmp_path, offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.timeout", (5,))


def test_the_own_words_of_the_rank_that_held_up_the_others_are_the_cause(tmp_path: Path) -> None:
    job = frozen()
    logs(job, tmp_path)
    with (tmp_path / "rank5.log").open("a") as log:
        log.write(
            "Traceback (most recent call last):\n"
            '  File "/workspace/pretrain.py", line 33, in training_step\n    batch = next(batches)\n'
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-0017.bin'\n"
        )
    job.write(tmp_path / "dumps")
    body = triage(tmp_path, offline=True).verdict
    assert body.culprits.ranks == (5,) and body.failure_type in ("data.missing", "code.file_not_found")


def test_a_job_that_ended_well_is_not_accused_by_its_dumps(tmp_path: Path) -> None:
    job = frozen()
    logs(job, tmp_path, error=False)
    for path in tmp_path.glob("rank*.log"):
        path.write_text(
            path.read_text()
            + "Training completed. Do not forget to share your model on huggingface.co/models =)\n"
        )
    job.write(tmp_path / "dumps")
    assert triage(tmp_path, offline=True).verdict.failure_type == "none.completed"


def test_of_two_attempts_the_last_ones_dumps_count(tmp_path: Path) -> None:
    """Numbers begin anew with every start: rank 1 held up the first, rank 6 the second."""
    frozen(1, 21).write(tmp_path / "attempt_0")
    second = frozen(6, 8)
    second.write(tmp_path / "attempt_1", without=(2,))
    body = triage(tmp_path, offline=True).verdict
    assert body.culprits.ranks == (6,)


def test_dumps_of_hours_before_the_last_step_decide_nothing(tmp_path: Path) -> None:
    job = frozen()
    for rank in job.ranks:
        lines = [f"2026-09-21 20:{step:02d}:47 step {step}/1000 loss 2.31\n" for step in range(50)]
        (tmp_path / f"rank{rank}.log").write_text("".join(lines))
    job.write(tmp_path / "dumps")
    assert triage(tmp_path, offline=True).verdict.failure_type == "none.running"


class _Runs:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.place),))


def test_a_dump_with_code_in_it_is_named_and_never_run(tmp_path: Path) -> None:
    job = frozen()
    job.write(tmp_path / "job")
    place = tmp_path / "made"
    evil = {"version": "2.9", "pg_config": {}, "entries": [_Runs(place)]}
    (tmp_path / "job" / "nccl_trace_rank_0").write_bytes(pickle.dumps(evil, 2))
    (tmp_path / "job" / "nccl_trace_rank_1").write_bytes(b"\x80\x02}(X\x07\x00\x00\x00entriesprofiling_name")
    verdict = triage(tmp_path / "job", offline=True)
    assert not place.exists()
    assert verdict.verdict.culprits.ranks == (5,)
    told = {each.file: each.reason for each in verdict.unreadable}
    assert "not plain data" in told["nccl_trace_rank_0"] and set(told) == {
        "nccl_trace_rank_0", "nccl_trace_rank_1"
    }  # fmt: skip


def test_other_pickles_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "vocabulary.pkl").write_bytes(pickle.dumps({"the": 1, "a": 2}))
    with pytest.raises(NothingReadable):
        triage(tmp_path, offline=True)


def test_another_number_in_a_dump_is_another_id(tmp_path: Path) -> None:
    ids = []
    for at in (13, 13, 14):
        shutil.rmtree(tmp_path / "job", ignore_errors=True)
        frozen(at=at).write(tmp_path / "job")
        ids.append(triage(tmp_path / "job", offline=True).id)
    assert ids[0] == ids[1] != ids[2]
