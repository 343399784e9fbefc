"""Jobs that stood still long before something ended them, and ends that a later run left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, findings, judged, place, reading, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def launcher(at: str, what: str) -> str:
    return f"W0131 {at} 411 torch/distributed/elastic/multiprocessing/api.py:900] {what}\n"


def node(rank: int, error: str) -> str:
    """A node whose rank raises hours after the last line with a time; its launcher sees it end."""
    raised = "".join(f"[rank{rank}]: {line}\n" for line in traceback(error).splitlines())
    started = launcher("08:00:01.100000", "starting workers") + "tokenizer ready\n" * 4
    ended = "".join(
        launcher(f"10:40:0{number}.200000", f"Sending process {500 + number} closing signal SIGTERM")
        for number in range(3)
    )
    return started + raised + ended


LIMIT = (
    "slurmstepd: error: *** STEP 771.0 ON cn-1 CANCELLED AT 2026-01-31T20:00:00 DUE TO TIME LIMIT ***\n"
    "slurmstepd: error: *** JOB 771 ON cn-1 CANCELLED AT 2026-01-31T20:00:00 DUE TO TIME LIMIT ***\n"
)


@pytest.mark.parametrize(
    ("error", "failure_type"),
    [
        ("ValueError: sequence 812 holds no tokens", "code.value"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.", "cuda.out_of_memory"),
    ],
)
def test_a_limit_that_ends_what_stood_still_is_not_the_cause(
    tmp_path: Path, error: str, failure_type: str
) -> None:
    files = {"n1.log": steps(160, every=60.0), "n2.log": node(5, error), "slurm-771.out": LIMIT}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == (failure_type, (5,))


def test_a_limit_that_ends_a_job_that_makes_steps_is_the_cause(tmp_path: Path) -> None:
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB."
    files = {"n1.log": steps(718, every=60.0), "n2.log": node(5, error), "slurm-771.out": LIMIT}
    assert judged(tmp_path, files).verdict.failure_type == "scheduler.time_limit"


def test_a_limit_that_ends_a_job_that_writes_on_is_the_cause_though_it_counts_nothing(tmp_path: Path) -> None:
    told = "".join(f"{clock(900.0 * at)} INFO still mapping records ({'x' * at})\n" for at in range(47))
    files = {"n1.log": told, "n2.log": node(5, "ValueError: sequence 812 holds no tokens"), "s.out": LIMIT}
    assert judged(tmp_path, files).verdict.failure_type == "scheduler.time_limit"


ROWS = "JobID  State  ExitCode  NodeList\n------- ---------- -------- --------\n"


@pytest.mark.parametrize(
    ("later", "failure_type"),
    [
        ("8123    COMPLETED      0:0   cn[1-3,7]\n", "none.completed"),
        ("8124    COMPLETED      0:0   cn[1-3,7]\n", "host.node_lost"),
    ],
)
def test_of_a_requeued_job_the_last_row_of_its_number_counts(
    tmp_path: Path, later: str, failure_type: str
) -> None:
    log = steps(30) + f"{clock(70)} INFO Training finished.\n"
    rows = ROWS + "8123    NODE_FAIL      0:0   cn[1-4]\n" + later
    assert judged(tmp_path, {"train.log": log, "sacct.txt": rows}).verdict.failure_type == failure_type


BARS = "".join(
    f" {at // 10}%|##        | {at}/1000 [{at // 12:02d}:{at % 12 * 5:02d}<1:20:00,  5.01s/it]\n"
    for at in range(0, 240, 5)
)


def polled(late_watts: int, hour: str = "10") -> str:
    """A loop that writes what each GPU draws: before, and three times behind the last step."""
    late = ("08:40:00", "08:40:30", f"{hour}:41:00")
    looks = [("08:14:00", 561), *((at, late_watts) for at in late)]
    return "".join(
        f"2026-01-31T{at} cn-{host} gpu{gpu} pwr {watts + 3 * gpu} W util 99%\n"
        for at, watts in looks
        for host in (1, 2)
        for gpu in (0, 4)
    )


def test_gpus_that_are_busy_at_the_power_of_idle_ones_wait(tmp_path: Path) -> None:
    body = judged(tmp_path / "hangs", {"train.log": BARS, "power.txt": polled(103)}).verdict
    assert body.failure_type == "hang.silent"
    assert any("10:41:00 cn-1 gpu0 pwr 103 W" in each.text for each in body.evidence)
    for late in (polled(540), polled(103, hour="08")):  # at work, and all wait for a minute: somebody saves
        body = judged(tmp_path / str(len(late)), {"train.log": BARS, "power.txt": late}).verdict
        assert body.failure_type == "none.running"


def test_processes_that_a_launcher_ends_one_after_the_other_are_no_steps() -> None:
    ends = "".join(f"{clock(0.4 * at)} INFO reaping subprocess {7001 + at}\n" for at in range(8))
    found = findings(reading("run.log", traceback("ValueError: no shards") + ends))
    assert found.progress.traces == ()
    head = "[INFO] [launch.py:319:sigkill_handler]"
    known = "".join(f"[{clock(0.5 * at)}] {head} Killing subprocess {910 + at}\n" for at in range(8))
    assert findings(reading("run.log", known)).progress.traces == ()


WRONG_NAME = (
    "cn-2:71:71 [{gpu}] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ib9\n"
    "[2026-01-31 08:00:20] cn-2:71:71 [{gpu}] bootstrap.cc:118 NCCL WARN Bootstrap : "
    "no socket interface found\n"
)
LOST = (
    "torch.distributed.DistBackendError: [0] is setting up NCCL communicator and retrieving ncclUniqueId "
    "from [0] via c10d key-value store by key '0', but store->get('0') got error: failed to recv, got 0 bytes"
)


def test_an_interface_that_one_host_lacks_is_why_the_launchers_of_others_are_ended(tmp_path: Path) -> None:
    lacks = "".join(
        WRONG_NAME.format(gpu=rank - 2)
        + "".join(
            f"[rank{rank}]: {line}\n"
            for line in traceback("RuntimeError: ncclInvalidUsage: This usually reflects misuse").splitlines()
        )
        for rank in (2, 3)
    )
    waits = launcher("08:00:02.100000", "starting workers") + "".join(
        f"[rank{rank}]: {line}\n" for rank in (0, 1) for line in traceback(LOST).splitlines()
    )
    waits += launcher("08:00:31.200000", "Sending process 66 closing signal SIGTERM")
    waits += launcher("08:00:31.300000", "Received Signals.SIGTERM death signal, shutting down workers")
    verdict = judged(tmp_path, {"cn-1.log": waits, "cn-2.log": lacks}).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("collective.init", ("cn-2",))


def test_numbers_of_hosts_are_no_ranks(tmp_path: Path) -> None:
    refused = (
        "[W socket.cpp:663] [c10d] The client socket has failed to connect to [rk-4-811]:29400 "
        "(errno: 111 - Connection refused).\n"
    )
    logs = {
        f"rk-4-{number}.log": f"{clock(1)} [rk-4-{number}] up\n" + refused * (number != 840)
        for number in (811, 812, 840)
    }
    waits = "".join(
        f"{clock(600.0 * at)} [rk-4-811] waiting for all nodes: 2/3 nodes are here\n" for at in range(1, 9)
    )
    logs["rk-4-811.log"] += waits
    verdict = judged(tmp_path, logs).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("network.rendezvous", ("rk-4-840",))
    assert verdict.culprits.ranks == ()
    assert "2/3 nodes" in verdict.evidence[0].text
    assert "rk-4-840.log" in [each.file for each in verdict.evidence]


def test_a_file_named_after_a_host_bears_no_rank_where_other_ranks_ended_there(tmp_path: Path) -> None:
    failed = traceback("ImportError: libfabric.so.1: cannot open shared object file: No such file")
    waiting = [
        f"{clock(1)} INFO up\n[rank{rank}]: waiting\n[rank{rank + 1}]: waiting\n" for rank in (0, 4, 6)
    ]
    logs = {
        **{
            f"GZ-POD2-10-201-8-{number}.log": text
            for number, text in zip((17, 92, 133), waiting, strict=True)
        },
        "GZ-POD2-10-201-8-71.log": f"{clock(1)} INFO up\n" + failed * 2,
        "slurm.err": "srun: error: GZ-POD2-10-201-8-71: tasks 2-3: Exited with exit code 1\n"
        "srun: error: GZ-POD2-10-201-8-17: tasks 0-1: Exited with exit code 1\n"
        "srun: error: GZ-POD2-10-201-8-92: tasks 4-5: Exited with exit code 1\n"
        "srun: error: GZ-POD2-10-201-8-133: tasks 6-7: Exited with exit code 1\n",
    }
    assert place(tmp_path, logs) == ((2, 3), ("GZ-POD2-10-201-8-71",))
