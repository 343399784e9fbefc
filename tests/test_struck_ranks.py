"""Which rank and machine a fault struck, where machines, pods and ranks are told by different names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, place, steps, traceback

ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def test_a_lost_gpu_struck_the_rank_whose_cuda_failed_though_its_pods_node_is_not_told(
    tmp_path: Path,
) -> None:
    events = (
        "$ kubectl get events -A\n"
        "NAMESPACE   LAST SEEN   TYPE      REASON     OBJECT               MESSAGE\n"
        "default     9m          Warning   XidError   node/pool-b-17       "
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=88, name=python, GPU has fallen off the bus.\n"
        "ml          9m          Normal    Killing    pod/sft-1-0-ab12c    Stopping container trainer\n"
    )
    ranks = "".join(f"[rank{rank}]: step 40 loss 2.1\n" for rank in range(8, 16))
    log = (
        f"{ranks}[rank11]: Traceback (most recent call last):\n"
        '[rank11]:   File "/app/train.py", line 7, in step\n[rank11]:     loss.backward()\n'
        "[rank11]: torch.AcceleratorError: CUDA error: unspecified launch failure\n"
    )
    assert place(tmp_path, {"events.txt": events, "sft-1_trainer.log": log}) == ((11,), ("pool-b-17",))


def test_what_one_host_says_in_a_file_of_all_is_its_own(tmp_path: Path) -> None:
    lost = "MPICH ERROR [Rank {rank}] [job id 71.0] [Sat Jan 31 08:12:02 2026] [nid{host:06d}] - "
    lost += "Abort(136966671): Fatal error in PMPI_Iallreduce: Other MPI error: OFI poll failed\n"
    log = (
        "".join(f" [2026-01-31 08:0{n}:01.5] iteration {n * 10}/ 900 | lm loss: 2.1 |\n" for n in range(1, 9))
        + lost.format(rank=1, host=7)
        + "nid000009: Memory access fault by GPU node-4 (Agent handle: 0x55d0) on address 0x7f1000. "
        + "Reason: Unknown.\n"
        + lost.format(rank=0, host=6)
        + "srun: error: nid000009: task 26: Aborted (core dumped)\n"
        + "slurmstepd: error: *** STEP 71.0 ON nid000006 CANCELLED AT 2026-01-31T08:12:31 ***\n"
        + "srun: error: nid000007: tasks 8-15: Exited with exit code 255\n"
    )
    assert place(tmp_path, {"slurm-71.out": log}) == ((26,), ("nid000009",))


def test_the_node_whose_monitor_saw_a_programs_xid_is_where_it_ran(tmp_path: Path) -> None:
    node = (
        "Name:               gpu-node-12\nRoles:              gpu\nConditions:\n"
        "  Type          Status  LastHeartbeatTime                 Reason           Message\n"
        "  GpuMemWatch   True    Sat, 31 Jan 2026 08:40:32 +0000   GpuMemUnhealthy  "
        "DCGM_FR_XID_ERROR: Detected XID 31 for GPU 2\n"
    )
    ranks = "".join(f"[rank{rank}]: step 40 loss 2.1\n" for rank in range(8))
    log = (
        f"{ranks}[rank2]: Traceback (most recent call last):\n"
        f'[rank2]:   File "/app/ops.py", line 7, in backward\n[rank2]:     run()\n[rank2]: {ILLEGAL}\n'
    )
    files = {"describe_node.txt": node, "sft-worker-1.log": log}
    assert place(tmp_path, files) == ((2,), ("gpu-node-12",))
    assert judged(tmp_path / "again", files).verdict.failure_type == "cuda.illegal_memory_access"


def test_what_all_machines_with_a_file_of_their_own_met_alike_struck_none_of_them(tmp_path: Path) -> None:
    refused = traceback(
        "OSError: Forbidden: https://storage.googleapis.com/download/storage/v1/b/lab/o/corpus\n"
        "job@lab.iam.gserviceaccount.com does not have storage.objects.get access to the Google Cloud "
        "Storage object. Permission 'storage.objects.get' denied on resource (or it may not exist)."
    )
    files = {f"host-{number}.log": steps(3) + refused for number in range(6)}
    body = judged(tmp_path, files).verdict
    assert body.failure_type == "auth.denied"
    assert (body.culprits.ranks, body.culprits.hosts) == ((), ())


@pytest.mark.parametrize("kind", ["Completions:      3", "Kind:             PyTorchJob"])
def test_a_job_that_kubectl_describes_is_no_pod_and_no_machine(tmp_path: Path, kind: str) -> None:
    described = (
        f"Name:             sft-vision\nNamespace:        lab\n{kind}\nEvents:\n"
        "  Type     Reason            Age   From            Message\n"
        "  Normal   SuccessfulDelete  2m    job-controller  Deleted pod: sft-vision-2-4hj8x\n"
        "  Warning  DeadlineExceeded  2m    job-controller  Job was active longer than specified deadline\n"
    )
    files = {f"sft-vision-{number}.log": steps(40) for number in range(3)}
    body = judged(tmp_path, {"describe.txt": described, **files}).verdict
    assert body.failure_type == "scheduler.time_limit"
    assert body.culprits.hosts == ()


def ends(*processes: tuple[int, int, int], host: str) -> str:
    """torchrun's report of (rank, process, exit code), the last of which it takes for the root."""
    rows = [
        f"[{number}]:\n  time      : 2026-01-31_08:15:30\n  host      : {host}\n"
        f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {pid})\n"
        f"  error_file: <N/A>\n  traceback : Signal {-code} received by PID {pid}\n"
        for number, (rank, pid, code) in enumerate(processes)
    ]
    return (
        "=====\ntrain.py FAILED\n-----\nFailures:\n"
        + ("".join(rows[:-1]) or "  <NO_OTHER_FAILURES>\n")
        + "-----\nRoot Cause (first observed failure):\n"
        + rows[-1]
        + "=====\n"
    )


def test_of_ranks_that_show_an_error_alike_the_one_is_struck_whose_process_the_kernel_names(
    tmp_path: Path,
) -> None:
    pids = {rank: 7100 + rank for rank in range(8)}
    log = "".join(f"[rank{rank}]: step 40 loss 2.1\n" for rank in pids)
    log += "".join(f"[rank{rank}]: {ILLEGAL}\n" for rank in (3, 0, 1, 2, 4, 5, 6, 7))
    log += ends(*((rank, pid, -6) for rank, pid in pids.items()), host="ml-2")
    kernel = (
        "[Sat Jan 31 08:15:24 2026] NVRM: Xid (PCI:0000:4b:00): 31, pid=7105, name=python, Ch 00000008, "
        "intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f12_40000000. "
        "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE\n"
    )
    assert place(tmp_path / "a", {"train.log": log, "dmesg.txt": kernel})[0] == (5,)
    assert place(tmp_path / "b", {"train.log": log})[0] == ()


def test_who_a_watchdog_of_memory_ended_is_the_rank_with_that_process(tmp_path: Path) -> None:
    log = "".join(f"Epoch [1/9] Iter [{step}/900] loss 2.1\n" for step in range(10, 200, 10))
    log += ends((3, 5204, -15), host="desk-7")
    journal = (
        "Jan 31 08:15:29 desk-7 earlyoom[811]: low memory! at or below SIGTERM limits: mem 10.00%\n"
        'Jan 31 08:15:29 desk-7 earlyoom[811]: sending SIGTERM to process 5204 uid 1000 "python": '
        "badness 1102, VmRSS 40114 MiB\n"
    )
    assert place(tmp_path, {"train.log": log, "journal.txt": journal}) == ((3,), ("desk-7",))


FAILED = "DAGScheduler: Marking ResultStage {} (run at t.py:9) as failed due to a barrier task failed."
LIMIT = (
    "Container killed by YARN for exceeding physical memory limits. 40.2 GB of 40 GB physical memory used."
)


@pytest.mark.parametrize(
    ("barrier", "ranks"),
    [
        (FAILED.format(7), (3,)),
        ("BarrierTaskContext: Task 88 from Stage 7(Attempt 0) has entered the global sync, current", (3,)),
        ("DAGScheduler: ResultStage 7 (count at prepare.py:12) failed in 81.2 s", ()),  # pieces of data
        (FAILED.format(4), ()),
    ],
)
def test_a_lost_task_of_sparks_barrier_stage_is_the_rank_of_its_number(
    tmp_path: Path, barrier: str, ranks: tuple[int, ...]
) -> None:
    at = "24/05/02 10:00:07"
    log = (
        "".join(f"[rank 0] step {step} loss 2.1\n" for step in range(10, 200, 10))
        + f"{at} ERROR YarnScheduler: Lost executor 5 on wk7.lab.org: {LIMIT}\n"
        f"{at} WARN TaskSetManager: Lost task 3.0 in stage 7.0 (TID 88) (wk7.lab.org executor 5): "
        f"ExecutorLostFailure (executor 5 exited caused by one of the running tasks) Reason: {LIMIT}\n"
        f"{at} INFO {barrier}\n"
    )
    assert place(tmp_path, {"driver.log": log}) == (ranks, ("wk7.lab.org",))
