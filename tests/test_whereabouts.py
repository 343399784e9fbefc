"""Whose line it is and on which machine: small jobs whose logs tell it in ways of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, steps, traceback

DISK_FULL = "OSError: [Errno 28] No space left on device: '/scratch/a'"
IMPORT = "ModuleNotFoundError: No module named 'einops'"
XID = "NVRM: Xid (PCI:0000:3b:00): {xid}, pid={pid}, {what}\n"
WATCHDOG = (
    "[rank{rank}]:[E131 08:30:0{rank}.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
REMOTE = (
    "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, "
    "remote process exited or there was a network error, NCCL version 2.20.5\n"
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@dataclass(frozen=True)
class Case:
    files: Mapping[str, str]
    failure_type: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] | None = None  # None: not asked


def failure_report(host: str, rank: int, local: int, code: int, pid: int) -> str:
    return (
        "=====\nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : 2026-01-31_08:01:40\n  host      : {host}\n"
        f"  rank      : {rank} (local_rank: {local})\n"
        f"  exitcode  : {code} (pid: {pid})\n  error_file: <N/A>\n=====\n"
    )


def nccl(host: str, pid: int, rank: int, size: int, bus: str) -> str:
    return (
        f"{host}:{pid}:{pid + 40} [0] NCCL INFO ncclCommInitRank comm 0x5578{rank:04x} rank {rank} "
        f"nranks {size} cudaDev {rank % 4} nvmlDev {rank % 4} busId {bus} commId 0x1f - Init COMPLETE\n"
    )


DEEPSPEED_MAP = (
    "[2026-01-31 08:00:00,100] [INFO] [launch.py:161:main] global_rank_mapping=defaultdict(<class 'list'>, "
    "{'wk-1': [0, 1], 'wk-2': [2, 3]})\n"
)
SLURM = "slurmstepd: error: *** STEP 71.0 ON rk-b200-1 CANCELLED AT 2026-01-31T08:10:00 ***\n"
PODS = (
    "NAME          READY   STATUS    RESTARTS      AGE    IP            NODE\n"
    "tune-worker-0   1/1     Running   0             112m   10.2.65.11    metal-7\n"
    "tune-worker-1   1/1     Running   1 (2m ago)    112m   10.2.66.40    metal-9\n"
)

DESCRIBED = (
    "Name:             tune-worker-1\nNamespace:        lab\nNode:             metal-9/10.2.66.1\n"
    "Status:           Failed\nContainers:\n  main:\n    State:          Terminated\n"
    "      Reason:       OOMKilled\n      Exit Code:    137\n"
)

CASES = {
    "a pod is who its description says, whatever the file is called": Case(
        {"describe-worker-1.txt": DESCRIBED, "tune-worker-0.log": steps(20) + REMOTE.format(rank=0)},
        "host.out_of_memory",
        (),
        ("tune-worker-1",),
    ),
    "what a machine's tools said, in a file named after both": Case(
        {
            "slurm-71.out": behind("0: ", steps(20)) + SLURM,
            "smi-q_rk-b200-4.txt": "==============NVSMI LOG==============\n\nGPU 00000000:9D:00.0\n"
            "    Clocks Event Reasons\n        HW Slowdown                       : Active\n"
            "            HW Thermal Slowdown           : Active\n",
        },
        "gpu.thermal_power",
        (),
        ("rk-b200-4",),
    ),
    "a health agent that names the node before a job is stopped": Case(
        {
            "slurm-71.out": behind("0: ", steps(20))
            + '[agentd] 2026-01-31 08:09:00 node=rk-b200-4 check=gpu_ecc status=FAILED gpu=3 count="2"\n'
            + SLURM
        },
        "gpu.ecc_uncorrectable",
        (),
        ("rk-b200-4",),
    ),
    "a file named by number, its launcher names the host": Case(
        {
            "node0.log": steps(20) + REMOTE.format(rank=0) + failure_report("ml-a11", 0, 0, -6, 310),
            "node1.log": steps(20) + traceback(DISK_FULL) + failure_report("ml-a12", 5, 1, 1, 411),
        },
        "host.disk_full",
        (5,),
        ("ml-a12",),
    ),
    "a kernel log with a word before the host's name": Case(
        {
            "q7-a.torchrun.log": steps(20) + WATCHDOG.format(rank=0),
            "q7-b.torchrun.log": steps(20)
            + traceback("RuntimeError: CUDA error: unknown error")
            + failure_report("q7-b", 1, 0, 1, 88),
            "dmesg_q7-b.txt": "[Sat Jan 31 08:00:40 2026] "
            + XID.format(xid=120, pid="'<unknown>'", what="GSP task panic"),
            "dmesg_q7-a.txt": "[Sat Jan 31 07:59:40 2026] usb 1-1: new device\n",
        },
        "gpu.firmware",
        (1,),
        ("q7-b",),
    ),
    "a syslog that lies under the address by which the job knows the machine": Case(
        {
            "driver.log": f"{clock(0)} INFO worker.py:1841 -- Connected to Ray cluster\n"
            + "".join(
                f"(Actor pid={pid}, ip=10.9.1.{at}) step {n} loss 2.1\n"
                for n in range(1, 9)
                for pid, at in ((12, 4), (77, 5))
            )
            + "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n",
            "syslog.10.9.1.5": "Jan 31 08:00:20 head-b kernel: [81.882614] Out of memory: Killed process 77 "
            "(ray::Actor) total-vm:402118804kB, anon-rss:281203112kB, file-rss:81920kB\n",
        },
        "host.out_of_memory",
        hosts=("10.9.1.5",),
    ),
    "a GPU's fault by the bus that NCCL names": Case(
        {
            "run.log": nccl("h1", 501, 0, 4, "3b000")
            + nccl("h1", 502, 1, 4, "5e000")
            + nccl("h2", 601, 2, 4, "3b000")
            + nccl("h2", 602, 3, 4, "5e000")
            + steps(20)
            + "".join(REMOTE.format(rank=rank) for rank in range(4)),
            "dmesg_h2.txt": "[Sat Jan 31 08:00:39 2026] "
            + XID.format(xid=79, pid="'<unknown>'", what="GPU has fallen off the bus."),
        },
        "gpu.fell_off_bus",
        (2,),
        ("h2",),
    ),
    "a node's fault under a pod": Case(
        {
            "pods_wide.txt": PODS,
            "launcher.log": behind("tune-worker-0: ", steps(20))
            + "".join(
                behind("tune-worker-1: ", f"[rank3]: {line}")
                for line in traceback("RuntimeError: CUDA error: unspecified launch failure").splitlines()
            )
            + "".join(behind(f"tune-worker-{r // 2}: ", REMOTE.format(rank=r)) for r in (0, 1, 2)),
            "metal-9_dmesg.txt": "[Sat Jan 31 08:00:35 2026] "
            + XID.format(xid=79, pid="'<unknown>'", what="GPU has fallen off the bus."),
        },
        "gpu.fell_off_bus",
        (3,),
        ("metal-9",),
    ),
    "all ranks of one of two hosts": Case(
        {
            "all.log": behind("wk-1: ", DEEPSPEED_MAP)
            + behind("wk-2: ", DEEPSPEED_MAP)
            + behind("wk-1: ", steps(3))
            + 2 * behind("wk-2: ", traceback(IMPORT))
            + "pdsh@wk-1: wk-2: ssh exited with exit code 1\n"
        },
        "code.import",
        (2, 3),
        ("wk-2",),
    ),
    "the kernel kills a process that DeepSpeed's launcher lists": Case(
        {
            "train.log": steps(9)
            + "".join(
                f"[2026-01-31 08:00:30,{n}00] [INFO] [launch.py:319:sigkill_handler] "
                f"Killing subprocess {pid}\n"
                for n, pid in enumerate((901, 905, 911, 917))
            )
            + "[2026-01-31 08:00:31,100] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', "
            "'t.py', '--local_rank=3'] exits with return code = -9\n",
            "dmesg_T.txt": "[Sat Jan 31 08:00:28 2026] Out of memory: Killed process 905 (python) "
            "total-vm:124932600kB, anon-rss:34401160kB, file-rss:48000kB\n",
        },
        "host.out_of_memory",
        (1,),
    ),
    "launchers under srun": Case(
        {
            "slurm-9.out": "".join(
                f"{n}: [rank{4 * n + r}]: step {s} loss 2.1\n"
                for s in range(1, 7)
                for n in (0, 1)
                for r in (0, 2)
            )
            + behind("1: ", behind("[rank6]: ", traceback("ZeroDivisionError: division by zero")))
            + "srun: error: c2: task 1: Exited with exit code 1\nsrun: error: c1: task 0: Terminated\n"
        },
        "code.zero_division",
        (6,),
    ),
    "an actor that names its rank once": Case(
        {
            "driver.log": "".join(
                f"(PolicyWorker pid={4400 + r}, ip=10.2.0.{r}) {clock(r)} | INFO | rank {r}: ready\n"
                for r in range(6)
            )
            + behind("(PolicyWorker pid=4404, ip=10.2.0.4) ", traceback("KeyError: 'advantages'"))
        },
        "code.key",
        (4,),
        ("10.2.0.4",),
    ),
    "a core of a TPU": Case(
        {
            "xla.log": "".join(
                f"| Training Device=xla:{d}/{d} Epoch=1 Step={s} Loss=2.1\n"
                for s in range(0, 90, 10)
                for d in range(4)
            )
            + "Exception in device=TPU:2: RESOURCE_EXHAUSTED: From /job:tpu_worker/replica:0/task:0:\n"
            "2 root error(s) found.\n"
            "  (0) RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory. That was not "
            "possible.\n"
            "Exception in device=TPU:0: Cancelled: From /job:tpu_worker/replica:0/task:0:\n"
        },
        "cuda.out_of_memory",
        (2,),
    ),
    "a replica of a managed service": Case(
        {
            "log.jsonl": "".join(
                f'{{"jsonPayload": {{"message": "workerpool{p}-{i}: cached {n} samples"}}}}\n'
                for n in range(3)
                for p, i in ((0, 0), (1, 0), (1, 1), (1, 2))
            )
            + '{"textPayload": "The replica workerpool1-2 ran out-of-memory and exited with a non-zero '
            'status of 137(SIGKILL)."}\n'
        },
        "host.out_of_memory",
        (3,),
        ("workerpool1-2",),
    ),
    "a machine that the cloud took, in a list of hosts": Case(
        {
            "hosts.txt": "".join(f"worker-{n} spotvm-{n} 10.1.0.{n + 4}\n" for n in range(4)),
            "operations.txt": "systemevent-17  compute.instances.preempted  spotvm-2  DONE  "
            "2026-01-31T08:00:38Z\n",
            **{
                f"worker-{n}.log": steps(20) + ("SIGTERM caught\nTerminated\n" if n == 2 else "")
                for n in range(4)
            },
        },
        "scheduler.preempted",
        (2,),
        ("spotvm-2",),
    ),
    "a command that one host lacks": Case(
        {
            "run.log": "[INFO] [multinode_runner.py:65:get_cmd] Running on the following workers: "
            "wk-1,10.3.0.9\n"
            "10.3.0.9: bash: /opt/env/bin/python: No such file or directory\n"
            "pdsh@wk-1: 10.3.0.9: ssh exited with exit code 127\n"
            + behind(
                "wk-1: ",
                traceback(
                    "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, "
                    "for key: store_based_barrier_key:1 (world_size=8, worker_count=4, timeout=0:30:00)"
                ),
            )
        },
        "scheduler.launch",
        hosts=("10.3.0.9",),
    ),
    "a checkpoint's exception that every rank repeats": Case(
        {
            "train.log": "".join(f"[rank{r}]: step {s} loss 2.1\n" for s in range(1, 9) for r in range(4))
            + "".join(
                behind(
                    f"[rank{r}]: ",
                    traceback(
                        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
                        "ranks:dict_keys([3])"
                    )
                    + 'Traceback (most recent call last): (RANK 3)\n  File "/app/w.py", line 4, in write\n'
                    "    os.fsync(f)\nOSError: [Errno 5] Input/output error",
                )
                for r in range(4)
            )
        },
        "storage.filesystem",
        (3,),
    ),
    "files that only count in a folder of ranks": Case(
        {
            **{f"ranks/{r}.out": steps(9) for r in (0, 3, 5)},
            "ranks/5.err": traceback("RuntimeError: CUDA error: invalid configuration argument"),
        },
        "cuda.launch_failure",
        (5,),
    ),
    "local ranks of the second of two machines in a row": Case(
        {
            "gn04/stderr": "".join(
                f"[default{r}]:ready\n[default{r}]:step {s} loss 2\n" for s in (1, 2, 3) for r in (0, 1)
            ),
            "gn05/stderr": "".join(f"[default{r}]:ready\n" for r in (0, 1) for _ in range(3))
            + behind("[default1]:", traceback("ZeroDivisionError: division by zero")),
        },
        "code.zero_division",
        (3,),
        ("gn05",),
    ),
    "a rank that all who complain name": Case(
        {
            "job.txt": "".join(f"[rank{r}]: step {s} loss 2.1\n" for s in range(1, 9) for r in range(4))
            + "".join(
                behind(
                    f"[rank{r}]: ", traceback("AssertionError: Rank 1 has different values for step: 8016.0")
                )
                for r in (0, 2, 3)
            )
        },
        "code.assertion",
        (1,),
    ),
    "ranks of which one built another model": Case(
        {
            "job.txt": "".join(f"[rank{r}]: building the model, {s}\n" for s in range(8) for r in range(4))
            + "".join(
                behind(
                    f"[rank{r}]: ",
                    traceback(
                        f"RuntimeError: DDP expects same model across all ranks, but Rank {r} has 40 params, "
                        f"while rank {0 if r == 2 else 2} has inconsistent {40 if r == 2 else 38} params."
                    ),
                )
                for r in range(4)
            )
        },
        "collective.desync",
        (2,),
    ),
    "a node's event of a GPU fault, and the rank that never gave up on its peers": Case(
        {
            "events.txt": "LAST SEEN   TYPE      REASON     OBJECT          MESSAGE\n"
            "58m         Normal    Started    pod/sft-0       Started container trainer\n"
            "13m         Warning   XIDError   node/gpu-w-12   kernel: "
            + XID.format(xid=119, pid=4031, what="name=python, Timeout after 6s of waiting for RPC response"),
            "sft-0.log": steps(20) + "".join(WATCHDOG.format(rank=rank) for rank in (0, 2, 3)),
        },
        "gpu.firmware",
        (1,),
        ("gpu-w-12",),
    ),
    "the one host that the others lost, by its name": Case(
        {
            f"cam-{at}.log": "".join(f"{clock(n)} [cam-{at}] step={n} loss=2.1\n" for n in range(1, 9))
            + f"cam-{at}:20:21 [0] misc/socket.cc:523 NCCL WARN Net : Connection closed by remote peer "
            "cam-2<51224>\n"
            + traceback(
                f"RuntimeError: NCCL communicator was aborted on rank {at - 1}.  Original reason for "
                "failure was: NCCL error: remote process exited or there was a network error"
            )
            for at in (1, 3)
        },
        "collective.remote_error",
        hosts=("cam-2",),
    ),
    "files named after the hosts with which their lines begin": Case(
        {
            f"ml-n{at}.log": "".join(f"{clock(n)} ml-n{at} step {n} loss 1.7\n" for n in range(1, 20))
            + (f"{clock(20)} ml-n2 WARNING health: rank 9 gpu 1 hw_slowdown=Active\n" if at == 2 else "")
            for at in (1, 2)
        },
        "gpu.thermal_power",
        (9,),
        ("ml-n2",),
    ),
    "a process of Ray's whose rank its own lines told": Case(
        {
            "driver.log": "".join(
                f"(TrainActor pid={700 + r}) [08:00:0{n}] memory.py:39 - [Rank {r}] allocated {n} GB\n"
                for n in range(4)
                for r in range(4)
            )
            + "ray.exceptions.RayTaskError(OutOfMemoryError): ray::TrainActor.train() (pid=702, ip=10.1.2.3, "
            "actor_id=0a1b)\n"
            '  File "/w/actor.py", line 8, in train\n    loss.backward()\n'
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total\n"
        },
        "cuda.out_of_memory",
        (2,),
    ),
    "an actor that Ray introduces, and another rank's words among its frames": Case(
        {
            "driver.log": "".join(
                f"(Trainer pid={60 + r}, ip=10.1.2.{r // 2}) [08:00:0{n}] got batch {n}\n"
                for n in range(9)
                for r in range(4)
            )
            + "ray.exceptions.RayTaskError(RuntimeError): ray::Trainer.fit() (pid=61, ip=10.1.2.0, "
            "actor_id=0a1b)\n"
            '  File "/w/actor.py", line 8, in fit\n    y = gemm(x)\n'
            "RuntimeError: /te/common/gemm/cublaslt_gemm.cu:321 in function cublas_gemm: cuBLAS Error: an "
            "internal operation failed\n"
            "(Trainer pid=61, ip=10.1.2.0) [rank1]:[W131 08:01:01.000000001 socket.cpp:9] [c10d] closing\n"
            "(Trainer pid=62, ip=10.1.2.1) [rank2]:[W131 08:01:02.000000001 TCPStore.cpp:125] [c10d] recv"
            "Value failed on SocketImpl(fd=8, addr=[10.1.2.1]:5, remote=[10.1.2.0]:3): Connection reset by "
            "peer\n"
            "(Trainer pid=63, ip=10.1.2.1) [rank3]:[W131 08:01:02.000000001 TCPStore.cpp:125] [c10d] recv"
            "Value failed on SocketImpl(fd=8, addr=[10.1.2.1]:5, remote=[10.1.2.0]:3): Connection reset by "
            "peer\n"
        },
        "cuda.library",
        (1,),
        ("10.1.2.0",),
    ),
    "the host that mpirun names": Case(
        {
            "job.o12": steps(20) + "mpirun noticed that process rank 5 with PID 0 on node nx-14 exited on "
            "signal 9 (Killed).\n"
        },
        "process.killed",
        (5,),
        ("nx-14",),
    ),
    "a console that only says which host's connection ended": Case(
        {"console.log": steps(20) + "pdsh@front: n4: ssh exited with exit code 255\n"},
        "unknown",
        hosts=("n4",),
    ),
    "a daemon that mpirun lost": Case(
        {
            "mpirun.out": "[1,0]<stdout>:Epoch: [0][0/312]  Time 0.210  Loss 6.2\n"
            "ORTE has lost communication with a remote daemon.\n\n"
            "  HNP daemon   : [[679,0],0] on node g05\n  Remote daemon: [[679,0],2] on node g07\n",
            "last_reboot.g05": "reboot   system boot  4.18.0-372 Mon Aug  1 09:10   still running\n",
            "last_reboot.g07": "reboot   system boot  4.18.0-372 Wed Sep 14 02:04   still running\n",
        },
        "host.node_lost",
        hosts=("g07",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_began_there(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    body = judged(tmp_path, case.files).verdict
    assert (body.failure_type, body.culprits.ranks) == (case.failure_type, case.ranks)
    if case.hosts is not None:
        assert body.culprits.hosts == case.hosts


def test_the_pod_that_ran_out_of_memory_is_named_not_its_node(tmp_path: Path) -> None:
    rows = PODS.replace("1/1     Running   1 (2m ago)", "0/1     OOMKilled 1 (2m ago)")
    body = judged(tmp_path, {"kubectl_get_pods.txt": rows, "launcher.log": steps(20)}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("host.out_of_memory", ("tune-worker-1",))


def test_a_return_code_is_not_blamed_on_the_process_spawned_last(tmp_path: Path) -> None:
    text = steps(9) + (
        "[2026-01-31 08:00:31,100] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', 't.py', "
        "'--local_rank=3'] exits with return code = -11\n"
    )
    assert judged(tmp_path, {"train.log": text}).verdict.culprits.ranks == ()


def test_a_kernel_log_whose_start_was_guessed_wrongly_still_counts(tmp_path: Path) -> None:
    dmesg = (
        '[383161.979621] audit: type=1400 audit(1719312871.551:88): apparmor="STATUS"\n'
        "[390000.100000] " + XID.format(xid=79, pid="'<unknown>'", what="GPU has fallen off the bus.")
    )
    files = {"rank0.log": steps(20) + REMOTE.format(rank=0), "dmesg.txt": dmesg}
    assert judged(tmp_path, files).verdict.failure_type == "gpu.fell_off_bus"


EVENTS_YAML = """apiVersion: v1
items:
- apiVersion: v1
  count: 1
  involvedObject:
    kind: Node
    name: ip-10-7-0-9.internal
  kind: Event
  lastTimestamp: "2026-01-31T08:01:02Z"
  message: Spot interruption warning was triggered
  reason: SpotInterrupted
  type: Warning
- apiVersion: v1
  count: 1
  involvedObject:
    kind: Pod
    name: tune-worker-1
  kind: Event
  message: Stopping container trainer
  reason: Killing
  type: Normal
kind: List
"""


def test_the_object_of_an_event_stands_above_its_message(tmp_path: Path) -> None:
    files = {"events.yaml": EVENTS_YAML, "tune-worker-0.log": steps(30) + WATCHDOG.format(rank=0)}
    body = judged(tmp_path, files).verdict
    assert body.failure_type == "scheduler.preempted"
    assert body.culprits.hosts == ("ip-10-7-0-9.internal",)
