"""Whole jobs: from a folder of logs to the type, the culprits and the line that shows it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenes import bank, clock, job, steps

import logtriage.pipeline as pipeline
from logtriage.intake.folder import NothingReadable
from logtriage.pipeline import triage
from logtriage.report.document import CitedLine, Verdict


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "load_bank", lambda extra=(): bank())
        yield


def judged(folder: Path, files: Mapping[str, str | bytes]) -> Verdict:
    """The verdict on a job with these files, whose every cited line was checked to be there."""
    verdict = triage(job(folder, files), offline=True)
    check_cited(verdict, {name: decompressed(name, content) for name, content in files.items()})
    return verdict


def decompressed(name: str, content: str | bytes) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return gzip.decompress(data) if name.endswith(".gz") and not name.endswith(".tar.gz") else data


def cited_lines(verdict: Verdict) -> Iterable[CitedLine]:
    yield from verdict.verdict.evidence
    for each in verdict.verdict.alternatives:
        yield from each.evidence
    for attempt in verdict.attempts:
        yield from attempt.evidence


def check_cited(verdict: Verdict, files: Mapping[str, bytes]) -> None:
    """No cited line is invented: file, line number, offset and text are those of the input."""
    for cited in cited_lines(verdict):
        data = files[cited.file]
        assert data[: cited.offset].count(b"\n") == cited.line - 1
        assert cited.offset == 0 or data[cited.offset - 1 : cited.offset] == b"\n"
        raw = data[cited.offset :].split(b"\n")[0]
        assert raw.rstrip(b"\r\n").decode("utf-8", "replace") == cited.text
    places = [
        *((each.file, each.line) for each in verdict.symptoms),
        *((each.file, each.line) for each in verdict.indications),
        *((each.file, each.line) for each in verdict.timeline),
        *((each.file, each.line) for each in verdict.verdict.chain),
    ]
    for file, line in places:
        if file is not None and line is not None:
            assert 1 <= line <= len(files[file].split(b"\n"))


def first(verdict: Verdict) -> tuple[str, str]:
    evidence = verdict.verdict.evidence[0]
    return evidence.file, evidence.text


WATCHDOG = (
    "[rank{rank}]:[E131 08:30:0{rank}.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=9, OpType={op}, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
GLOO = (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 41, in <module>\n'
    "    dist.all_reduce(loss)\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", line 2501, in all_reduce\n'
    "    work.wait()\n"
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
    "30000ms for recv operation to complete\n"
)


def traceback(error: str, function: str = "main", module: str = "/app/train.py") -> str:
    return (
        f'Traceback (most recent call last):\n  File "{module}", line 7, in {function}\n    run(x)\n{error}\n'
    )


def report(rank: int, code: int, host: str = "node-a", pid: int = 2001) -> str:
    """What torchrun says when a rank ended."""
    return (
        "=====================================\ntrain.py FAILED\n-------------------------------------\n"
        "Failures:\n  <NO_OTHER_FAILURES>\n-------------------------------------\n"
        f"Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-31_08:01:40\n"
        f"  host      : {host}\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {pid})\n"
        f"  error_file: <N/A>\n  traceback : Signal {-code} (SIGKILL) received by PID {pid}\n"
        "=====================================\n"
    )


# --- who began it -----------------------------------------------------------------------------------


def test_in_a_torchrun_tree_the_rank_that_said_nothing_is_named(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {}
    for rank in range(4):
        here = f"run_x1/attempt_0/{rank}"
        files[f"{here}/stdout.log"] = steps(20 if rank != 2 else 17)
        files[f"{here}/stderr.log"] = GLOO if rank != 2 else ""
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "collective.timeout"
    assert verdict.verdict.culprits.ranks == (2,)
    assert verdict.job.ranks == 4
    cited = {(each.file, each.line) for each in verdict.verdict.evidence}
    assert ("run_x1/attempt_0/2/stdout.log", 17) in cited


def test_a_kernel_log_explains_time_outs_on_another_host(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        {
            "node-a/rank0.log": steps(20) + WATCHDOG.format(rank=0, op="ALLREDUCE"),
            "node-a/rank1.log": steps(20) + WATCHDOG.format(rank=1, op="ALLREDUCE"),
            "node-b/rank2.log": steps(20),
            "node-b/rank3.log": steps(20) + WATCHDOG.format(rank=3, op="ALLREDUCE"),
            "node-b/dmesg.log": (
                "[Sat Jan 31 08:00:39 2026] NVRM: GPU at PCI:0000:3b:00: GPU-1f2e3d4c\n"
                "[Sat Jan 31 08:00:39 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, "
                "GPU has fallen off the bus.\n"
            ),
        },
    )
    assert verdict.verdict.failure_type == "gpu.fell_off_bus"
    assert verdict.verdict.culprits.hosts == ("node-b",)
    assert first(verdict)[0] == "node-b/dmesg.log"
    assert "79" in first(verdict)[1]
    assert verdict.verdict.restart.exclude_hosts == ("node-b",)
    assert "collective.timeout" in {each.failure_type for each in verdict.symptoms}


def test_retry_warnings_of_one_rank_are_the_cause_of_the_others_errors(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"rank{rank}.log": steps(20) + WATCHDOG.format(rank=rank, op="ALLREDUCE") for rank in (0, 1, 3)
    }
    warnings = "".join(
        f"{clock(40 + number)} WARNING attempt {number} failed: OSError: [Errno 116] Stale file handle\n"
        for number in range(1, 6)
    )
    verdict = judged(tmp_path, {**files, "rank2.log": steps(20) + warnings})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("storage.filesystem", (2,))
    assert first(verdict)[0] == "rank2.log"
    assert "Stale file handle" in first(verdict)[1]


def test_ranks_in_different_collectives_are_a_desync(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        {
            f"rank{rank}.log": steps(20)
            + WATCHDOG.format(rank=rank, op="ALLREDUCE" if rank != 1 else "BROADCAST")
            for rank in range(4)
        },
    )
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("collective.desync", (1,))
    assert first(verdict)[0] == "rank1.log"


def test_an_error_on_one_rank_explains_the_lost_peers(tmp_path: Path) -> None:
    lost = "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.7]:1234\n"
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 23.44 GiB. GPU 3 has a total "
        "capacity of 79.15 GiB of which 1.20 GiB is free.\n"
    )
    files: dict[str, str | bytes] = {f"rank{rank}.log": steps(20) + lost for rank in (0, 1, 2)}
    verdict = judged(tmp_path, {**files, "rank3.log": steps(20) + traceback(oom.strip())})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("cuda.out_of_memory", (3,))
    assert first(verdict) == ("rank3.log", oom.strip())
    assert verdict.verdict.action == "fix_config"
    assert not verdict.verdict.restart.advised
    assert verdict.verdict.mitigations[0].source == "rule"


def test_where_all_ranks_fail_alike_nobody_is_blamed(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path, {f"rank{rank}.log": steps(3) + traceback("KeyError: 'labels'") for rank in range(4)}
    )
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.key", ())
    assert first(verdict) == ("rank0.log", "KeyError: 'labels'")


# --- the scheduler and the host ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "failure_type", "advised"),
    [
        ("CANCELLED AT 2026-01-31T08:10:00 DUE TO TIME LIMIT ***", "scheduler.time_limit", True),
        ("CANCELLED AT 2026-01-31T08:10:00 DUE TO PREEMPTION ***", "scheduler.preempted", True),
        (
            "CANCELLED AT 2026-01-31T08:10:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "host.node_lost",
            True,
        ),
        ("CANCELLED AT 2026-01-31T08:10:00 ***", "scheduler.cancelled", False),
    ],
)
def test_what_ended_a_slurm_job_is_told_apart(
    tmp_path: Path, words: str, failure_type: str, advised: bool
) -> None:
    line = f"slurmstepd: error: *** JOB 4711 ON gpu-1 {words}"
    verdict = judged(tmp_path, {"slurm-4711.out": steps(300) + line + "\n"})
    assert verdict.verdict.failure_type == failure_type
    assert first(verdict) == ("slurm-4711.out", line)
    assert verdict.verdict.restart.advised is advised
    assert verdict.job.outcome == "failed"


def test_a_cancelled_job_that_had_failed_before_failed_before(tmp_path: Path) -> None:
    """Slurm cancels the other tasks of a step when one has failed."""
    text = "".join(f"{rank}: step {step} loss 2.0\n" for step in range(1, 20) for rank in range(4))
    text += "".join(f"1: {line}\n" for line in traceback("KeyError: 'x'").splitlines())
    text += "slurmstepd: error: *** STEP 4711.0 ON gpu-1 CANCELLED AT 2026-01-31T08:10:00 ***\n"
    verdict = judged(tmp_path, {"slurm-4711.out": text})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.key", (1,))
    assert first(verdict) == ("slurm-4711.out", "1: KeyError: 'x'")


def test_the_oom_killer_explains_a_killed_rank(tmp_path: Path) -> None:
    kernel = (
        "[Sat Jan 31 08:01:38 2026] python invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0\n"
        "[Sat Jan 31 08:01:39 2026] Out of memory: Killed process 2001 (python) total-vm:99999999kB, "
        "anon-rss:88888888kB, file-rss:0kB\n"
    )
    verdict = judged(
        tmp_path,
        {
            "node-a/rank0.log": steps(40),
            "node-a/rank1.log": steps(40),
            "node-a/torchrun.log": report(1, -9, pid=2001),
            "node-a/dmesg.log": kernel,
        },
    )
    assert verdict.verdict.failure_type == "host.out_of_memory"
    assert verdict.verdict.culprits.hosts == ("node-a",)
    assert first(verdict)[0] == "node-a/dmesg.log"


def test_a_killed_rank_with_nothing_else_is_just_that(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        {
            "rank0.log": steps(40),
            "rank1.log": steps(40),
            "rank2.log": steps(40),
            "torchrun.log": report(1, -9),
        },
    )
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("process.killed", (1,))
    assert first(verdict) == ("torchrun.log", "  exitcode  : -9 (pid: 2001)")


# --- attempts ---------------------------------------------------------------------------------------


def test_restarts_that_fail_alike_show_that_a_restart_does_not_help(tmp_path: Path) -> None:
    bad = "AssertionError: sequence length 4097 exceeds 4096"
    refused = "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms"
    files: dict[str, str | bytes] = {}
    for attempt, error in enumerate((bad, refused, bad)):
        for rank in range(4):
            here = f"run_x1/attempt_{attempt}/{rank}"
            files[f"{here}/stdout.log"] = steps(20, at=1000 * attempt) if error == bad else ""
            files[f"{here}/stderr.log"] = (
                f"{clock(1000 * attempt + 50)} ERROR stopping\n" + traceback(error, "check")
                if rank == 3
                else ""
            )
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "code.assertion"
    assert verdict.verdict.culprits.ranks == (3,)
    assert verdict.job.attempts == 3
    assert first(verdict) == ("run_x1/attempt_2/3/stderr.log", bad)
    assert "run_x1/attempt_0/3/stderr.log" in {each.file for each in verdict.verdict.evidence}
    assert {each.attempt: each.failure_type for each in verdict.attempts}[0] == "code.assertion"


@pytest.mark.xfail(
    strict=True, reason="only the last attempt is judged, though an earlier one broke its checkpoint"
)
def test_a_full_disk_explains_the_corrupt_checkpoint_of_later_attempts(tmp_path: Path) -> None:
    full = "OSError: [Errno 28] No space left on device"
    corrupt = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
    files: dict[str, str | bytes] = {
        "run_x1/attempt_0/0/stderr.log": f"{clock(50)} ERROR cannot save\n"
        + traceback(full, "save_checkpoint"),
        "run_x1/attempt_0/0/stdout.log": steps(20),
        "run_x1/attempt_1/0/stderr.log": f"{clock(90)} ERROR cannot load\n"
        + traceback(corrupt, "load_checkpoint"),
        "run_x1/attempt_2/0/stderr.log": f"{clock(190)} ERROR cannot load\n"
        + traceback(corrupt, "load_checkpoint"),
    }
    verdict = judged(tmp_path, files)
    assert verdict.verdict.failure_type == "host.disk_full"
    assert first(verdict) == ("run_x1/attempt_0/0/stderr.log", full)


# --- nothing failed ---------------------------------------------------------------------------------


HARMLESS = (
    "[W131 08:00:00.000000000 socket.cpp:755] [c10d] The hostname of the client socket cannot be retrieved. "
    "err=-3\n"
    "UserWarning: The given NumPy array is not writable, and PyTorch does not support non-writable tensors.\n"
    " iteration 7/ 99 | number of skipped iterations:   0 | number of nan iterations:   0 | loss: 2.1 |\n"
    "INFO failed_steps=0 errors=0 timeout=600 fault_tolerance=enabled max_retries=3\n"
    "INFO registering signal handlers for SIGTERM and SIGUSR1\n"
)  # fmt: skip


def test_a_healthy_job_with_scary_words_ended_well(tmp_path: Path) -> None:
    text = HARMLESS + steps(200) + f"{clock(402)} INFO Training finished.\n"
    verdict = judged(tmp_path, {"train.log": text})
    assert (verdict.verdict.failure_type, verdict.job.outcome) == ("none.completed", "completed")
    assert first(verdict)[1].endswith("Training finished.")
    assert verdict.job.last_step == 200


def test_a_job_that_still_runs_has_not_failed(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {f"rank{rank}.log": HARMLESS + steps(200) for rank in range(2)})
    assert (verdict.verdict.failure_type, verdict.job.outcome) == ("none.running", "running")
    assert "step 200 " in first(verdict)[1]


def test_errors_that_were_survived_are_no_failure(tmp_path: Path) -> None:
    blip = f"{clock(40)} ERROR requests.exceptions.ConnectionError: ('Connection aborted.', None)\n"
    text = steps(20) + blip + steps(100, first=21, at=42) + f"{clock(300)} INFO Training finished.\n"
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "none.completed"


def test_logs_without_any_sign_are_honestly_unknown(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"notes.log": "hello\nworld\n"})
    assert verdict.verdict.failure_type == "unknown"
    assert verdict.verdict.confidence < 0.5
    assert verdict.verdict.collect_next


# --- forms of logs ----------------------------------------------------------------------------------


def test_the_first_exception_of_a_chain_is_the_cause(tmp_path: Path) -> None:
    text = (
        steps(3)
        + traceback("OSError: [Errno 28] No space left on device", "write")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("RuntimeError: writing the snapshot failed", "save")
    )
    verdict = judged(tmp_path, {"train.log": text})
    assert verdict.verdict.failure_type == "host.disk_full"
    assert first(verdict) == ("train.log", "OSError: [Errno 28] No space left on device")


def test_a_traceback_inside_a_json_record_is_read(tmp_path: Path) -> None:
    records = [
        {
            "ts": f"2026-01-31T08:00:{number:02d}Z",
            "level": "INFO",
            "rank": number % 2,
            "msg": f"step {number} loss 2.0",
        }
        for number in range(1, 30)
    ]
    records.append(
        {
            "ts": "2026-01-31T08:00:31Z",
            "level": "ERROR",
            "rank": 1,
            "msg": "training failed",
            "exc_info": traceback("ModuleNotFoundError: No module named 'flash_attn'").strip(),
        }
    )
    text = "".join(json.dumps(record) + "\n" for record in records)
    verdict = judged(tmp_path, {"events.jsonl": text})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.import", (1,))
    assert (verdict.verdict.evidence[0].line, verdict.verdict.evidence[0].rank) == (30, 1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    text = steps(20) + traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    verdict = triage(job(tmp_path, {"train.log": text.encode(encoding)}), offline=True)
    assert verdict.verdict.failure_type == "cuda.out_of_memory"
    assert verdict.verdict.evidence[0].line == len(text.splitlines())
    assert verdict.verdict.evidence[0].text.startswith("torch.OutOfMemoryError")


def test_rotated_parts_are_one_log(tmp_path: Path) -> None:
    """An error in an old part that was survived in a newer one did not end the job."""
    old = steps(20) + f"{clock(41)} ERROR OSError: [Errno 5] Input/output error\n" + steps(3, first=21, at=42)
    verdict = judged(
        tmp_path,
        {
            "train.log.2.gz": gzip.compress(old.encode()),
            "train.log.1.gz": gzip.compress(steps(50, first=24, at=60).encode()),
            "train.log": steps(50, first=74, at=200)
            + f"{clock(310)} ERROR "
            + "ValueError: bad learning rate\n",
        },
    )
    assert verdict.verdict.failure_type == "code.value"
    assert first(verdict)[0] == "train.log"
    assert verdict.mining.lines == 24 + 50 + 51


def test_a_compressed_log_is_cited_by_its_plain_lines(tmp_path: Path) -> None:
    text = steps(20) + traceback("IndexError: list index out of range")
    verdict = judged(tmp_path, {"train.log.gz": gzip.compress(text.encode())})
    assert verdict.verdict.failure_type == "code.index"
    assert verdict.verdict.evidence[0].line == len(text.splitlines())


def test_an_archive_is_read_through(tmp_path: Path) -> None:
    texts = {
        "job/rank0.log": steps(20)
        + "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:9\n",
        "job/rank1.log": steps(20) + traceback("ZeroDivisionError: division by zero"),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    verdict = triage(job(tmp_path, {"logs.tar.gz": packed.getvalue()}), offline=True)
    check_cited(verdict, {f"logs.tar.gz/{name}": text.encode() for name, text in texts.items()})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.zero_division", (1,))
    assert first(verdict) == ("logs.tar.gz/job/rank1.log", "ZeroDivisionError: division by zero")


def test_a_broken_file_is_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    whole = gzip.compress(steps(2_000).encode())
    verdict = triage(
        job(tmp_path, {"a.log": traceback("KeyError: 'x'"), "b.log.gz": whole[: len(whole) // 2]}),
        offline=True,
    )
    assert verdict.verdict.failure_type == "code.key"
    assert [each.file for each in verdict.unreadable] == ["b.log.gz"]


def test_a_folder_with_nothing_to_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(NothingReadable):
        triage(tmp_path, offline=True)


def test_a_file_alone_is_a_job(tmp_path: Path) -> None:
    job(tmp_path, {"train.log": traceback("KeyError: 'x'")})
    assert triage(tmp_path / "train.log", offline=True).verdict.failure_type == "code.key"


def test_the_needle_is_found_in_a_large_log(tmp_path: Path) -> None:
    """A file that is too large to be read closely is searched whole all the same."""
    filler = "".join(
        f"{clock(number / 50)} DEBUG allocator moved block {number * 7919} of pool {number % 13}\n"
        for number in range(60_000)
    )
    needle = f"{clock(600)} ERROR RuntimeError: CUDA error: an illegal memory access was encountered\n"
    text = (
        filler[: len(filler) // 2].rsplit("\n", 1)[0]
        + "\n"
        + needle
        + filler[len(filler) // 2 :].split("\n", 1)[1]
    )
    verdict = judged(tmp_path, {"train.log": text})
    assert verdict.verdict.failure_type == "cuda.illegal_memory_access"
    assert first(verdict)[1] == needle.strip()


def test_the_same_bytes_give_the_same_verdict(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"rank{rank}.log": steps(20) + WATCHDOG.format(rank=rank, op="ALLREDUCE") for rank in range(3)
    }
    one = judged(tmp_path / "a" / "job", files)
    two = judged(tmp_path / "b" / "job", dict(reversed(files.items())))
    assert one.id == two.id
    assert one.verdict == two.verdict
    other = judged(tmp_path / "c" / "job", {**files, "rank2.log": steps(21)})
    assert other.id != one.id


def test_templates_of_earlier_runs_are_not_novel(tmp_path: Path) -> None:
    healthy = job(tmp_path / "before", {"train.log": HARMLESS + steps(50)})
    failed = job(
        tmp_path / "now", {"train.log": HARMLESS + steps(50) + "KeyError: 'x'\nodd new words here\n"}
    )
    assert triage(failed, offline=True, history=[healthy]).mining.novel_templates == 2
    assert triage(failed, offline=True).mining.novel_templates is None


# --- laws -------------------------------------------------------------------------------------------


def _examples() -> list[str]:
    lines = [example.line for rule in bank().rules for example in rule.examples]
    return [line for line in lines if "\n" not in line]


PARTS = st.one_of(
    st.deferred(lambda: st.sampled_from(_examples())),
    st.integers(1, 12).map(lambda count: steps(count).rstrip("\n")),
    st.sampled_from(
        [
            "", "\r", "Traceback (most recent call last):", '  File "/app/x.py", line 3, in f', "    f()",
            "During handling of the above exception, another exception occurred:", "KeyError: 'x'",
            "[rank1]: ValueError: bad", "[rank0]: Traceback (most recent call last):", "==========", "[0]:",
            "  rank      : 1 (local_rank: 1)", "  exitcode  : -9 (pid: 7)",
            "Root Cause (first observed failure):",
            '{"msg": "step 1 loss 2", "rank": 1}', '{"msg": "x\\ny", "exc_info": "KeyError: 1"}',
            "\ufffd\ufeff",
            "[  123.456789] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.",
        ]
    ),
    st.text(max_size=30),
)  # fmt: skip
CONTENTS = st.one_of(
    st.lists(PARTS, max_size=25).map(lambda lines: "\n".join(lines).encode("utf-8", "replace")),
    st.lists(PARTS, max_size=25).map(
        lambda lines: "".join(f"{each}\n" for each in lines).encode("utf-8", "replace")
    ),
    st.binary(max_size=200).map(lambda raw: b"log\n" + raw.replace(b"\x00", b"")),
)
NAMES = st.sampled_from(
    [
        "train.log", "rank0.log", "rank1.log", "node-a/rank2.log", "node-b/rank3.log", "node-b/dmesg.log",
        "run_x/attempt_0/0/stderr.log", "run_x/attempt_1/0/stderr.log", "slurm-7.out", "torchrun.log",
    ]
)  # fmt: skip


@given(st.dictionaries(NAMES, CONTENTS, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_cited_line_is_invented_whatever_the_logs_hold(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            verdict = triage(job(Path(folder), files), offline=True)
        except NothingReadable:
            assert not any(content.strip() for content in files.values())
            return
        check_cited(verdict, files)
        assert 0 <= verdict.verdict.confidence <= 1
        assert verdict.verdict.summary
        json.loads(verdict.to_json())
