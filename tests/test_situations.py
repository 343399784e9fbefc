"""Many small jobs, one of each kind that people meet: the type, who is blamed, and the line that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, first, judged, steps, traceback

REMOTE = (
    "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, "
    "remote process exited "
    "or there was a network error, NCCL version 2.20.5\n"
)  # fmt: skip
CLOSED = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:9"
)
BOOT = (
    "[Sat Jan 31 07:59:01 2026] mlx5_core 0000:5e:00.0: firmware version: 22.39\n"
    "[Sat Jan 31 07:59:02 2026] EXT4-fs (nvme0n1p2): mounted filesystem\n"
    "[Sat Jan 31 07:59:03 2026] usb 1-1: new device\n"
)
SLURM = "slurmstepd: error: *** JOB 4711 ON gpu-1 CANCELLED AT 2026-01-31T08:10:00"
EVENTS = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n"
BEATS = "".join(f"{clock(60 + 10 * number)} DEBUG heartbeat\n" for number in range(100))


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@dataclass(frozen=True)
class Case:
    files: Mapping[str, str]
    failure_type: str
    says: str  # what the first cited line holds
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] | None = None  # None: not asked


def ranks(count: int, odd: Mapping[int, str], other: str = "", first: int = 0) -> dict[str, str]:
    """Workers of which some say something of their own and all others the same."""
    return {f"rank{rank}.log": steps(9) + odd.get(rank, other) for rank in range(first, first + count)}


def report(rank: int, code: int) -> str:
    return (
        "=====\nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : 2026-01-31_08:01:40\n  host      : node-a\n  rank      : {rank} "
        f"(local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: 2001)\n  error_file: <N/A>\n=====\n"
    )


def interleaved() -> str:
    """Two tracebacks in one file, line by line in turn."""
    text = "".join(f"[rank{rank}]: step {step} loss 2.0\n" for step in range(1, 9) for rank in range(4))
    one = [f"[rank1]: {line}\n" for line in traceback("ZeroDivisionError: division by zero").splitlines()]
    two = [f"[rank2]: {line}\n" for line in traceback(CLOSED).splitlines()]
    return text + "".join(line for pair in zip_longest(one, two, fillvalue="") for line in pair)


ASSERTS = "".join(
    f"../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [{block},0,0], "
    f"thread: [{thread},0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.\n"
    for block in range(20)
    for thread in range(32)
)  # fmt: skip

CASES = {
    "a pod that ran out of memory": Case(
        {
            "describe.txt": "Name: trainer-1\nContainers:\n  train:\n    Last State:     Terminated\n"
            "      Reason:       OOMKilled\n      Exit Code:    137\n",
            "worker.log": steps(20),
        },
        "host.out_of_memory",
        "OOMKilled",
    ),
    "a killed rank whose peers lost it": Case(
        {**ranks(4, {2: ""}, CLOSED + "\n"), "torchrun.log": report(2, -9)}, "process.killed", "-9", (2,)
    ),
    "a crashed rank whose peers lost it": Case(
        {**ranks(4, {1: ""}, CLOSED + "\n"), "torchrun.log": report(1, -11)},
        "process.native_crash",
        "-11",
        (1,),
    ),
    "a rank that ended without a word": Case(
        {**ranks(4, {1: ""}, CLOSED + "\n"), "torchrun.log": report(1, 1)}, "unknown", "exitcode  : 1", (1,)
    ),
    "a panic of one node": Case(
        {
            "node-a/rank0.log": steps(20) + REMOTE.format(rank=0),
            "node-b/rank1.log": steps(20),
            "node-b/dmesg.log": BOOT + "[Sat Jan 31 08:00:45 2026] Kernel panic - not syncing: "
            "Fatal machine check\n",
        },
        "host.node_lost",
        "Kernel panic",
        ranks=(1,),  # the only one that ran there
        hosts=("node-b",),
    ),
    "an uncorrectable error of one of eight GPUs": Case(
        {
            **{f"node-a/rank{rank}.log": steps(9) + REMOTE.format(rank=rank) for rank in range(4)},
            **{f"node-b/rank{rank}.log": steps(9) + REMOTE.format(rank=rank) for rank in (4, 6, 7)},
            "node-b/rank5.log": steps(9) + traceback("RuntimeError: CUDA error: uncorrectable ECC "
            "error encountered"),
        },
        "gpu.ecc_uncorrectable",
        "uncorrectable ECC",
        (5,),
        ("node-b",),
    ),
    "a GPU fault of days before the job": Case(
        {
            "node-a/rank0.log": steps(20) + traceback("KeyError: 'x'"),
            "node-a/rank1.log": steps(20),
            "node-a/dmesg.log": "[Thu Jan 29 03:00:45 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, "
            "GPU has fallen off "
            "the bus.\n" + BOOT,
        },
        "code.key",
        "KeyError",
        (0,),
    ),
    "another program that ran out of memory days before": Case(
        {
            "node-a/rank0.log": steps(20) + traceback("KeyError: 'x'"),
            "node-a/rank1.log": steps(20),
            "node-a/dmesg.log": "[Thu Jan 29 03:00:45 2026] Out of memory: Killed process 99 (postgres) "
            "total-vm:99999999kB, anon-rss:88888888kB\n" + BOOT,
        },
        "code.key",
        "KeyError",
        (0,),
    ),
    "a storm of one Xid before another": Case(
        {
            "node-a/dmesg.log": "".join(
                f"[{1000 + number / 100:.6f}] NVRM: Xid (PCI:0000:3b:00): 31, pid={number % 29}, MMU Fault\n"
                for number in range(1_000)
            )
            + "[2000.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n",
            "node-a/rank0.log": steps(9),
        },
        "gpu.fell_off_bus",
        "79",
        hosts=("node-a",),
    ),
    "shared memory": Case(
        {
            "train.log": steps(9)
            + traceback(
                "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is "
                "possible that "
                "dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
            )
        },
        "host.shared_memory",
        "Bus error",
    ),
    "a loader's worker that vanished": Case(
        {"train.log": steps(5) + traceback("RuntimeError: DataLoader worker (pid(s) 4242) exited "
        "unexpectedly")},
        "data.loader_worker",
        "exited unexpectedly",
    ),
    "an exception inside a loader's worker": Case(
        {
            "train.log": steps(5)
            + traceback("RuntimeError: Caught KeyError in DataLoader worker process 2.")
            + "Original " + traceback("KeyError: 'caption'", "__getitem__", "/app/data.py")
        },
        "code.key",
        "KeyError: 'caption'",
    ),
    "a loss that is no number": Case(
        {
            "train.log": steps(9)
            + f"{clock(20)} WARNING loss is nan at step 10\n"
            + traceback("AssertionError: loss is not finite")
        },
        "numerics.nan",
        "loss is n",
    ),
    "a device-side assertion of one rank": Case(
        ranks(2, {1: ASSERTS + traceback("RuntimeError: CUDA error: device-side assert "
        "triggered")}, CLOSED + "\n"),
        "cuda.device_assert",
        "ssert",
        (1,),
    ),
    "tracebacks of two ranks in turn": Case(
        {"all.log": interleaved()}, "code.zero_division", "division by zero", (1,)
    ),
    "a port that is taken": Case(
        {
            "train.log": traceback(
                "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
                "local network "
                "address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: "
                "address already in use"
            )
        },
        "network.address_in_use",
        "EADDRINUSE",
    ),
    "a rendezvous that was not complete": Case(
        {
            f"rank{rank}.log": traceback(
                "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. "
                "3/4 clients joined."
            )
            for rank in range(3)
        },
        "network.rendezvous",
        "3/4 clients joined",
    ),
    "a gated repository": Case(
        {
            "train.log": traceback("requests.exceptions.HTTPError: 401 Client Error: Unauthorized "
            "for url: https://x.y/z")
            + "\nThe above exception was the direct cause of the following exception:\n\n"
            + traceback("OSError: You are trying to access a gated repo.")
        },
        "auth.denied",
        "401 Client Error",
    ),
    "a package that is missing on all ranks": Case(
        {f"rank{rank}.log": traceback("ModuleNotFoundError: No module named 'apex'") for rank in range(4)},
        "code.import",
        "apex",
    ),
    "an argument that is not known": Case(
        {"train.log": "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --rate 3\n"},
        "code.argument",
        "unrecognized",
    ),
    "a program with a slip of the pen": Case(
        {"train.log": '  File "/app/x.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'},
        "code.syntax",
        "SyntaxError",
    ),
    "a checkpoint of another model": Case(
        {
            "train.log": traceback(
                "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for w: "
                "copying a param with "
                "shape torch.Size([1]) from checkpoint, the shape in current model is torch.Size([2])."
            )
        },
        "checkpoint.mismatch",
        "loading state_dict",
    ),
    "memory of another framework's device": Case(
        {
            "train.log": traceback(
                "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
                "trying to allocate "
                "17179869184 bytes."
            )
        },
        "cuda.out_of_memory",
        "RESOURCE_EXHAUSTED",
    ),
    "a time limit in the scheduler's record": Case(
        {"sacct.txt": "JobID|JobName|State|ExitCode\n77|train|TIMEOUT|0:0\n77.batch|batch|CANCELLED|0:15\n",
         "slurm-77.out": steps(300)},
        "scheduler.time_limit",
        "TIMEOUT",
    ),
    "a preempted job that saves first": Case(
        {
            "slurm-1.out": steps(100) + SLURM + " DUE TO PREEMPTION ***\n"
            + f"{clock(201)} INFO caught SIGTERM, saving checkpoint\n"
            + traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 "
            "got signal: 15")
        },
        "scheduler.preempted",
        "PREEMPTION",
    ),
    "a preempted pod": Case(
        {"events.txt": "3m   Normal   Preempted   pod/trainer-0   Preempted by pod default/other on "
        "node gpu-7\n",
         "trainer-0.log": steps(40)},
        "scheduler.preempted",
        "Preempted by pod",
    ),
    "an image that is not there": Case(
        {"events.txt": '3m   Warning   Failed   pod/trainer-0   Failed to pull image "x/y:z": rpc '
        'error: code = NotFound\n'},
        "scheduler.launch",
        "Failed to pull image",
    ),
    "an interrupt from the keyboard": Case(
        {"train.log": steps(20) + traceback("KeyboardInterrupt")}, "scheduler.cancelled", "KeyboardInterrupt"
    ),
    "a first attempt that failed and a second that ended well": Case(
        {
            "run/attempt_0/0/stderr.log": traceback("KeyError: 'x'"),
            "run/attempt_0/0/stdout.log": steps(9),
            "run/attempt_1/0/stdout.log": steps(99, at=100) + f"{clock(400)} INFO Training finished.\n",
        },
        "none.completed",
        "Training finished",
    ),
    "warnings behind the end": Case(
        {
            "train.log": steps(99) + f"{clock(210)} INFO Training finished.\n"
            "/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: "
            "resource_tracker: There appear to "
            "be 6 leaked semaphore objects to clean up at shutdown\n"
        },
        "none.completed",
        "Training finished",
    ),
    "words in what is no log": Case(
        {
            "train.log": steps(99),
            "env.txt": "NCCL_TIMEOUT=600\nLAST_ERROR=CUDA out of memory\nHOME=/root\nLANG=C\n",
            "pip_freeze.txt": "errorhandler==2.0\nexceptiongroup==1.2\n",
        },
        "none.running",
        "step 99 ",
    ),
    "zeroes in a table of errors": Case(
        {
            "train.log": steps(99),
            "nvidia-smi.txt": "    Ecc Errors\n        Volatile\n            SRAM Correctable        : 0\n"
            "            SRAM Uncorrectable      : 0\n            DRAM Uncorrectable      : 0\n",
        },
        "none.running",
        "step 99 ",
    ),
    "a node that its cloud takes back, and a peer that notices": Case(
        {
            "events.txt": EVENTS
            + "9m   Normal   Scheduled   pod/sft-0   Successfully assigned ml/sft-0 to aks-g-1-vmss00000a\n"
            "9m   Normal   Scheduled   pod/sft-1   Successfully assigned ml/sft-1 to aks-g-1-vmss00000b\n"
            "2m   Warning   PreemptScheduled   node/aks-g-1-vmss00000b   Preempt Scheduled: Sat, 31 Jan 2026 "
            "08:00:40 GMT. DurationInSeconds: -1.\n"
            "1m   Normal   RemovingNode   node/aks-g-1-vmss00000b   Node aks-g-1-vmss00000b event: Removing "
            "Node aks-g-1-vmss00000b from Controller\n",
            "sft-0.log": steps(20) + REMOTE.format(rank=0),
        },
        "scheduler.preempted",
        "PreemptScheduled",
        hosts=("aks-g-1-vmss00000b",),
    ),
    "a node that Karpenter gives up": Case(
        {
            "events.txt": EVENTS
            + "9m   Normal   Scheduled   pod/sft-1   Successfully assigned ml/sft-1 to "
            "ip-10-4-0-9.ec2.internal\n"
            "3m   Normal   SpotRebalanceRecommendation   node/ip-10-4-0-9.ec2.internal   Spot rebalance "
            "recommendation was triggered\n"
            "2m   Warning   SpotInterrupted   node/ip-10-4-0-9.ec2.internal   Spot interruption warning was "
            "triggered\n"
            "1m   Warning   InstanceTerminating   node/ip-10-4-0-9.ec2.internal   Instance is terminating\n",
            "sft-0.log": steps(20) + REMOTE.format(rank=0),
        },
        "scheduler.preempted",
        "SpotInterrupted",
        hosts=("ip-10-4-0-9.ec2.internal",),
    ),
    "an image that came at the second try, in a job that ended well": Case(
        {
            "events.txt": EVENTS
            + '9m   Normal   Pulled   pod/tune-1   Successfully pulled image "reg/tune:2" in 41s\n'
            '10m   Warning   Failed   pod/tune-1   Failed to pull image "reg/tune:2": rpc error\n'
            '10m   Normal   BackOff   pod/tune-1   Back-off pulling image "reg/tune:2": ErrImagePull\n'
            "11m   Warning   FailedScheduling   pod/tune-1   0/4 nodes are available: 4 Insufficient cpu.\n"
            "10m   Normal   Scheduled   pod/tune-1   Successfully assigned ml/tune-1 to gpu-7\n"
            "1m   Normal   Completed   job/tune   Job completed\n",
            "tune-0.log": steps(20),
        },
        "none.completed",
        "Job completed",
    ),
    "a node of other pods that was removed while a program failed": Case(
        {
            "events.txt": EVENTS
            + "9m   Normal   Scheduled   pod/tune-0   Successfully assigned ml/tune-0 to gke-p-1\n"
            "3m   Normal   ScaleDown   node/gke-p-9   marked the node as toBeDeleted/unschedulable\n"
            "3m   Normal   RemovingNode   node/gke-p-9   Node gke-p-9 event: Removing Node gke-p-9 from "
            "Controller\n",
            "tune-0.log": steps(20) + traceback("KeyError: 'b'"),
        },
        "code.key",
        "KeyError",
    ),
    "a probe that failed once, and nobody was stopped for it": Case(
        {
            "events.txt": EVENTS + "9m   Warning   Unhealthy   pod/tune-0   Liveness probe failed: dial tcp "
            "10.2.3.4:8080: connect: connection refused\n",
            "tune-0.log": steps(20),
        },
        "none.running",
        "step 20 ",
    ),
    "an image that never came to one pod of a job whose description tells that it ended well": Case(
        {
            "events.txt": EVENTS
            + '58m   Warning   Failed   pod/tune-1-x7k2p   Failed to pull image "reg/a:1"\n',
            "describe-job-tune.txt": "Name:             tune\nNamespace:        ml\nSelector:         a=b\n"
            "Labels:           a=b\nAnnotations:      <none>\nParallelism:      2\nCompletions:      2\n"
            "Pods Statuses:    0 Active (0 Ready) / 2 Succeeded / 0 Failed\nEvents:\n"
            "  Type    Reason     Age   From            Message\n"
            "  Normal  Completed  2m    job-controller  Job completed\n",
            "tune-0-b2c4d.log": steps(20),
        },
        "none.completed",
        "Job completed",
    ),
    "a container that is created again and again and never starts": Case(
        {
            "events.txt": EVENTS
            + "9m   Normal   Scheduled   pod/tune-1   Successfully assigned ml/tune-1 to gpu-7\n"
            '2m   Warning   Failed   pod/tune-1   Error: secret "hub" not found\n'
            '2m   Normal   Pulled   pod/tune-1   Container image "reg/tune:2" already present on machine\n'
            "2m   Normal   Created   pod/tune-1   Created container main\n",
        },
        "scheduler.launch",
        "secret",
    ),
    "an image of one container that never came": Case(
        {
            "events.txt": EVENTS
            + '9m   Warning   Failed   pod/tune-1   Failed to pull image "reg/tune:2": rpc error\n'
            '8m   Normal   Pulled   pod/tune-1   Successfully pulled image "reg/side:1" in 41s\n'
            "8m   Normal   Started   pod/tune-1   Started container side\n"
        },
        "scheduler.launch",
        "Failed to pull image",
    ),
    "processes of JAX's that never connected": Case(
        {
            "err.txt": traceback(
                "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
                "PjRT_Client_Connect::0. This usually happens because a task triggered the barrier too early"
            )
        },
        "network.rendezvous",
        "PjRT_Client_Connect",
    ),
    "a process of JAX's whose devices nobody was told": Case(
        {
            "err.txt": traceback(
                "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: Getting local topologies "
                "failed: Error 0: GetKeyValue() timed out with key: cuda:local_topology/cuda/5 and"
            )
        },
        "network.rendezvous",
        "local_topology",
    ),
    "a coordinator of JAX's that nobody listens as": Case(
        {
            "err.txt": traceback(
                "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to all addresses; last "
                "error: UNKNOWN: ipv4:10.4.0.1:1234: Failed to connect to remote host: Connection refused"
            )
            + "RPC: /tensorflow.CoordinationService/RegisterTask\n"
        },
        "network.rendezvous",
        "failed to connect to all addresses",
    ),
    "a Ray job whose record says that it was stopped": Case(
        {
            "driver.log": steps(20),
            "rayjob.yaml": "kind: RayJob\nstatus:\n  jobDeploymentStatus: Complete\n  jobStatus: STOPPED\n"
            "  message: Job was intentionally stopped.\n",
        },
        "scheduler.cancelled",
        "STOPPED",
    ),
    "processes of JAX's that wait for one in the middle": Case(
        {
            "err.txt": steps(20)
            + traceback(
                "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
                "save_12::3. This usually happens because a task triggered the barrier too early"
            )
        },
        "collective.timeout",
        "save_12",
    ),
    "a program that writes on but steps no more": Case(
        {"train.log": steps(20) + BEATS}, "hang.silent", "step 20 "
    ),
    "lines that end as in Windows": Case(
        {"train.log": (steps(5) + traceback("KeyError: 'x'")).replace("\n", "\r\n")}, "code.key", "KeyError"
    ),
    "coloured prefixes": Case(
        {
            "train.log": "".join(
                f"\x1b[36m(worker pid=7)\x1b[0m {line}\n" for line in traceback("KeyError: 'x'").splitlines()
            )
        },
        "code.key",
        "KeyError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_job_is_judged_by_what_ended_it(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    verdict = judged(tmp_path, case.files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == (case.failure_type, case.ranks)
    assert case.says in first(verdict)[1]
    if case.hosts is not None:
        assert verdict.verdict.culprits.hosts == case.hosts


@pytest.mark.parametrize("words", [" DUE TO TIME LIMIT ***", " ***"])
def test_no_host_is_blamed_for_what_the_scheduler_did(tmp_path: Path, words: str) -> None:
    verdict = judged(tmp_path, {"slurm-4711.out": steps(300) + SLURM + words + "\n"})
    assert verdict.verdict.culprits.hosts == ()


def test_a_panic_on_a_short_console_names_its_host(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        {
            "node-a/rank0.log": steps(20) + REMOTE.format(rank=0),
            "node-b/rank1.log": steps(20),
            "node-b/console.log": "[ 4242.100000] Kernel panic - not syncing: Fatal machine check\n",
        },
    )
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.hosts) == ("host.node_lost", ("node-b",))


def test_one_throttling_record_makes_no_healthy_job_slow(tmp_path: Path) -> None:
    record = "[Sat Jan 31 08:00:10 2026] CPU3: Core temperature above threshold, cpu clock throttled\n"
    verdict = judged(
        tmp_path, {"rank0.log": steps(99), "rank1.log": steps(99), "node-a/dmesg.log": BOOT + record}
    )
    assert verdict.verdict.failure_type == "none.running"


@pytest.mark.parametrize(
    ("error", "failure_type"),
    [
        ("Error invalid configuration argument at line 7 in file /build/csrc/ops.cu", "cuda.launch_failure"),
        ("Error out of memory at line 388 in file /build/csrc/pythonInterface.cpp", "cuda.out_of_memory"),
        ("Error named symbol not found at line 80 in file /build/csrc/ops.cu", "cuda.version_mismatch"),
        ("Error invalid device function at line 80 in file /build/csrc/ops.cu", "cuda.version_mismatch"),
        ("Error an illegal memory access was encountered at line 90 in file /build/csrc/ops.cu",
         "cuda.illegal_memory_access"),
        ("Error invalid argument at line 12 in file train.yaml", "none.running"),
    ],
)  # fmt: skip
def test_an_extension_prints_cudas_error_and_leaves(tmp_path: Path, error: str, failure_type: str) -> None:
    tail = "" if failure_type == "none.running" else report(1, 1)
    verdict = judged(tmp_path, {"out.log": steps(9) + error + "\n" + tail}).verdict
    assert verdict.failure_type == failure_type


def audited(verb: str = "delete", user: str = "grace", resource: str = "mpijobs", minute: int = 1,
            code: int = 200) -> str:  # fmt: skip
    return (
        '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",'
        f'"requestURI":"/apis","verb":"{verb}","user":{{"username":"{user}"}},"objectRef":'
        f'{{"resource":"{resource}","namespace":"lab","name":"pre-9"}},"responseStatus":{{"metadata":{{}},'
        f'"code":{code}}},"requestReceivedTimestamp":"2026-01-31T08:{minute:02d}:20.5Z"}}\n'
    )


TOLD_TO_END = (
    "W0131 08:01:22.000000 1 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM "
    "death signal, shutting down workers\n"
)
DONE = f"{clock(90)} INFO `Trainer.fit` stopped: `max_steps=30` reached.\n"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


@pytest.mark.parametrize(
    ("log", "records", "failure_type"),
    [
        (steps(30) + TOLD_TO_END, audited("create", minute=0) + audited(), "scheduler.cancelled"),
        (steps(30), audited("get", minute=0) + audited(), "scheduler.cancelled"),
        (steps(30) + TOLD_TO_END, audited(user=COLLECTOR, resource="pods"), "process.killed"),
        (steps(30) + TOLD_TO_END, audited("get"), "process.killed"),
        (steps(30) + TOLD_TO_END, audited(code=403), "process.killed"),
        (steps(30) + TOLD_TO_END, audited(resource="configmaps"), "process.killed"),
        (steps(30) + TOLD_TO_END, audited(user="system:kube-scheduler", resource="pods"),
         "scheduler.preempted"),
        (steps(30) + DONE, audited(minute=9), "none.completed"),
        (steps(30) + traceback("KeyError: 'rows'"), audited(minute=9), "code.key"),
        (steps(900), audited(minute=9), "none.running"),
    ],
)  # fmt: skip
def test_an_audit_log_tells_who_deleted_a_job(
    tmp_path: Path, log: str, records: str, failure_type: str
) -> None:
    verdict = judged(tmp_path, {"out.log": log, "audit.jsonl": records}).verdict
    assert verdict.failure_type == failure_type
    assert "grace" in verdict.title or failure_type != "scheduler.cancelled"


FREED = (
    "terminate called after throwing an instance of 'c10::Error'\n"
    "  what():  CUDA error: initialization error\n"
    "Exception raised from insert_events at CUDACachingAllocator.cpp:1089 (most recent call first):\n"
)


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        (FREED + traceback("RuntimeError: DataLoader worker (pid(s) 77, 78) exited unexpectedly"),
         "data.loader_worker"),
        (FREED + traceback("RuntimeError: DataLoader worker (pid 912) is killed by signal: Aborted. "),
         "data.loader_worker"),
        (traceback("RuntimeError: CUDA error: initialization error"), "gpu.unavailable"),
        (traceback("zstd.Error: Decompression error: Unknown frame descriptor"), "data.corrupt"),
        (traceback("lz4.block.LZ4BlockError: Decompression failed: corrupt input or insufficient space in "
                   "destination buffer. Error code: 12"), "data.corrupt"),
    ],
)  # fmt: skip
def test_loading_fails_in_a_child_or_in_a_decoder(tmp_path: Path, text: str, failure_type: str) -> None:
    assert judged(tmp_path, {"train.log": steps(20) + text}).verdict.failure_type == failure_type


SLICE = (
    f"{clock(9)} INFO opening shards\n/usr/lib/python3/jax/_src/lib/xla_bridge.py:{{line}}: UserWarning: TPU "
    "backend initialization is taking more than {seconds} seconds. Did you run your code on all TPU hosts?\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("end", "failure_type"),
    [
        (traceback("ModuleNotFoundError: No module named 'einops'"), "code.import"),
        ("*** SIGSEGV (@(nil)), see gl_41#s15 received by PID 77 (TID 80) on cpu 3; stack trace: ***\n"
         "Segmentation fault (core dumped)\n", "process.native_crash"),
        ("", "collective.init"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seconds", ["60.0", "120.0"])
def test_hosts_of_a_slice_waited_for_one_that_ended(
    tmp_path: Path, end: str, failure_type: str, seconds: str
) -> None:
    waited = SLICE.format(line=184, seconds=seconds)
    files = {f"worker-{number}.log": waited + (end if number == 2 else "") for number in range(4)}
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == failure_type
    assert verdict.culprits.ranks == ((2,) if end else ())


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the "
        "version used to compile Pytorch binaries.  Pytorch binaries were compiled with Cuda 11.7.",
        "RuntimeError: The detected CUDA version (11.3) mismatches the version that was used to compile "
        "PyTorch (12.4). Please make sure to use the same CUDA versions.",
    ],
)
def test_a_build_that_pip_prints_with_an_indent_tells_why_it_failed(tmp_path: Path, error: str) -> None:
    build = "".join(f"  {line}\n" for line in traceback(error, "<module>", "/src/setup.py").splitlines())
    text = f"Processing /src\n  torch.__version__  = 2.1\n{build}  error: subprocess-exited-with-error\n"
    text += "error: metadata-generation-failed\nstart.sh: the extension is needed, giving up\n"
    assert judged(tmp_path, {"out.log": text}).verdict.failure_type == "cuda.version_mismatch"
