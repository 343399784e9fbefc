"""Whole jobs: from a folder of logs to the type, the culprits and the line that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import HARMLESS, WATCHDOG, bank_read_once, clock, first, judged, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


GLOO = (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 41, in <module>\n'
    "    dist.all_reduce(loss)\n"
    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", line 2501, in all_reduce\n'
    "    work.wait()\n"
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
    "30000ms for recv operation to complete\n"
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


def test_the_ranks_of_a_second_node_are_told_by_their_launcher(tmp_path: Path) -> None:
    """torchrun names the folders by local rank; only its report says which global ranks they are."""
    files: dict[str, str | bytes] = {
        f"{node}/run_x1/attempt_0/{local}/stdout.log": steps(20)
        for node in ("node-a", "node-b")
        for local in (0, 1)
    }
    files["node-b/run_x1/attempt_0/1/stderr.log"] = traceback("KeyError: 'labels'")
    files["node-b/torchrun.log"] = report(3, 1, "node-b").replace("(local_rank: 3)", "(local_rank: 1)")
    verdict = judged(tmp_path, files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.key", (3,))
    assert verdict.verdict.culprits.hosts == ("node-b",)
    assert first(verdict) == ("node-b/run_x1/attempt_0/1/stderr.log", "KeyError: 'labels'")


def test_a_gpu_with_memory_errors_is_named_with_its_host_and_address(tmp_path: Path) -> None:
    line = "NVRM: Xid (PCI:0000:b1:00): 48, pid=77, An uncorrectable double bit error (DBE) has been detected"
    verdict = judged(
        tmp_path,
        {
            "node-a/rank0.log": steps(20),
            "node-b/rank1.log": steps(20),
            "node-a/dmesg.log": "[Sat Jan 31 08:00:01 2026] usb 1-1: new device\n",
            "node-b/dmesg.log": f"[Sat Jan 31 08:00:39 2026] {line}\n",
        },
    )
    assert verdict.verdict.failure_type == "gpu.ecc_uncorrectable"
    assert verdict.verdict.culprits.hosts == ("node-b",)
    assert any("b1:00" in gpu for gpu in verdict.verdict.culprits.gpus)
    assert verdict.verdict.action == "restart_excluding_node"


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


@pytest.mark.parametrize(("pid", "ranks"), [(640, (2,)), (641, ())])
def test_whose_loader_the_oom_killer_chose(tmp_path: Path, pid: int, ranks: tuple[int, ...]) -> None:
    died = traceback(f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Killed. ")
    kernel = (
        "[Sat Jan 31 08:01:39 2026] Out of memory: Killed process 640 (python) total-vm:9kB, anon-rss:8kB\n"
    )
    text = steps(40) + "-- Process 2 terminated with the following error:\n" + died
    verdict = judged(tmp_path, {"job.log": text, "dmesg.log": kernel}).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("host.out_of_memory", ranks)


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
    assert first(verdict) == ("torchrun.log", "  traceback : Signal 9 (SIGKILL) received by PID 2001")


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


def test_a_healthy_job_with_scary_words_ended_well(tmp_path: Path) -> None:
    text = HARMLESS + steps(200) + f"{clock(402)} INFO Training finished.\n"
    verdict = judged(tmp_path, {"train.log": text})
    assert (verdict.verdict.failure_type, verdict.job.outcome) == ("none.completed", "completed")
    assert first(verdict)[1].endswith("Training finished.")
    assert verdict.job.last_step == 200
    assert not verdict.verdict.restart.advised


def test_a_job_that_still_runs_has_not_failed(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {f"rank{rank}.log": HARMLESS + steps(200) for rank in range(2)})
    assert (verdict.verdict.failure_type, verdict.job.outcome) == ("none.running", "running")
    assert "step 200 " in first(verdict)[1]


def test_errors_that_were_survived_are_no_failure(tmp_path: Path) -> None:
    blip = f"{clock(40)} ERROR OSError: [Errno 5] Input/output error\n"
    text = steps(20) + blip + steps(100, first=21, at=42) + f"{clock(300)} INFO Training finished.\n"
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "none.completed"


def test_logs_without_any_sign_are_honestly_unknown(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"notes.log": "hello\nworld\n"})
    assert verdict.verdict.failure_type == "unknown"
    assert verdict.verdict.confidence < 0.5
    assert verdict.verdict.collect_next


@pytest.mark.parametrize(
    ("file", "shown"), [("/opt/e/bin/python", "/opt/e/bin/python"), ("/o/$(reboot)", "FILE")]
)
def test_advice_names_what_the_line_names_and_nothing_that_a_shell_would_run(
    tmp_path: Path, file: str, shown: str
) -> None:
    line = f"slurmstepd-node-a: error: execve(): {file}: No such file or directory\n"
    verdict = judged(tmp_path, {"slurm-1.out": line})
    assert verdict.verdict.mitigations[0].text.startswith(f"Check that {shown} exists")
