"""Who wrote a line, as launchers and what gathers their output tell it: small jobs of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, steps, traceback

from logtriage.intake.labels import Columns, Head, read_labels


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


TYPE_ERROR = traceback('TypeError: can only concatenate str (not "int") to str')
OUT_OF_MEMORY = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.")


@pytest.mark.parametrize(
    ("label", "told"),
    [
        pytest.param(
            "[2026-01-31T08:20:00.000001Z] {id8} [rank={rank}] || ",
            "[2026-01-31T08:21:00.1Z]          || ERROR: container {id8} on agent {host} exited with code 1",
            id="Determined",
        ),
        pytest.param(
            "{id12} | [rank{rank}]: ",
            "launcher: container {id64} started on host {host}",
            id="Docker's short id, with the long one told",
        ),
        pytest.param(
            "[{yarn}] [rank{rank}] ",
            "INFO Container {yarn} allocated on host {host}",
            id="YARN",
        ),
    ],
)
def test_a_container_runs_where_its_starter_says(tmp_path: Path, label: str, told: str) -> None:
    def filled(text: str, rank: int) -> str:
        short = f"{rank // 4 + 5}f2c81d0"
        return text.format(
            id8=short, id12=f"{short}9ab1", id64=f"{short}9ab1" + "0c" * 26, rank=rank,
            host=f"pod-gpu{rank // 4 + 31}", yarn=f"container_1769_0001_01_00000{rank // 4 + 2}",
        )  # fmt: skip

    text = "".join(filled(told, rank) + "\n" for rank in (0, 4))
    text += "".join(behind(filled(label, rank), f"step {n} loss 2.1") for n in range(9) for rank in range(8))
    text += behind(filled(label, 6), OUT_OF_MEMORY)
    body = judged(tmp_path, {"job.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == (
        "cuda.out_of_memory", (6,), ("pod-gpu32",)
    )  # fmt: skip


@pytest.mark.parametrize(
    "label",
    [
        "[pod {pod}] ", "[pod/{pod}/main] ", "[pod={pod}] ", '{{pod="{pod}"}} ', "ns/{pod}[main]: ",
        '{{pod="{pod}", container="main"}} ', "[{pod} main] ", "[{pod}] ", "{pod} main ", "{pod} › main ",
        "{pod} | ", "{pod}| ", "{pod}  | ",
    ],
)  # fmt: skip
def test_a_pods_name_before_each_line(tmp_path: Path, label: str) -> None:
    text = "".join(
        behind(label.format(pod=f"bert-w-0-{at}"), f"INFO rank {at * 8 + n}: device {n} is up")
        for at in range(3)
        for n in range(8)
    )
    text += behind(label.format(pod="bert-w-0-1"), TYPE_ERROR)
    body = judged(tmp_path, {"pods.log": text}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("code.type", ("bert-w-0-1",))


LIMIT = {
    "describe": "Name:         {pod}\nNamespace:    ml\nNode:         {node}/10.8.0.1\nStatus:       Failed\n"
    "Containers:\n  main:\n    State:          Terminated\n      Reason:       {reason}\n"
    "      Exit Code:    {code}\n    Restart Count:  0\n\n",
    "yaml": "- apiVersion: v1\n  kind: Pod\n  metadata:\n    labels:\n      app: t\n    name: {pod}\n"
    "    namespace: ml\n  spec:\n    containers:\n    - name: main\n    nodeName: {node}\n  status:\n"
    "    containerStatuses:\n    - name: main\n      state:\n        terminated:\n"
    "          exitCode: {code}\n          reason: {reason}\n",
    "json": '        {{\n            "kind": "Pod",\n            "metadata": {{\n'
    '                "name": "{pod}",\n                "namespace": "ml"\n            }},\n'
    '            "spec": {{\n                "nodeName": "{node}"\n            }},\n'
    '            "status": {{\n'
    '                        "terminated": {{\n                            "exitCode": {code},\n'
    '                            "reason": "{reason}"\n                        }}\n'
    "            }}\n        }},\n",
}  # fmt: skip


@pytest.mark.parametrize("form", LIMIT)
def test_pods_described_one_below_the_other(tmp_path: Path, form: str) -> None:
    heads = {"yaml": "apiVersion: v1\nitems:\n", "json": '{\n    "apiVersion": "v1",\n    "items": [\n'}
    pods = heads.get(form, "")
    for at in range(3):
        reason, code = ("OOMKilled", 137) if at == 1 else ("Error", 1)
        pods += LIMIT[form].format(pod=f"sft-worker-{at}", node=f"pool-{at}", reason=reason, code=code)
    pods += {"yaml": "kind: List\n", "json": '    ],\n    "kind": "List"\n}\n'}.get(form, "")
    files = {f"sft-worker-{at}.log": steps(20) for at in range(3)}
    body = judged(tmp_path, {**files, f"pods.{form}": pods}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("host.out_of_memory", ("sft-worker-1",))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            "[INFO] [Torch] Saving /x/global_step40/bf16_zero_pp_rank_13_mp_rank_00_optim_states.pt...",
            "OSError: [Errno 28] No space left on device",
        ),
        ("INFO start", "OSError: [Errno 5] Input/output error: '/x/iter_0000040/__13_0.distcp'"),
        ("INFO reading", "OSError: [Errno 116] Stale file handle: '/x/checkpoint-40/rng_state_13.pth'"),
        ("INFO Saving checkpoint to /x/ep0-ba40-rank13.pt", "OSError: [Errno 122] Disk quota exceeded"),
    ],
)
def test_the_file_of_one_rank_names_its_writer(tmp_path: Path, said: str, error: str) -> None:
    text = behind("cn4: ", "\n".join(f"step {n} loss 2.1" for n in range(1, 30)))
    text += behind("cn5: ", said + "\n" + traceback(error))
    body = judged(tmp_path, {"job.log": text}).verdict
    assert (body.culprits.ranks, body.culprits.hosts) == ((13,), ("cn5",))


def test_a_shard_of_model_parallel_ranks_names_nobody(tmp_path: Path) -> None:
    error = "OSError: [Errno 5] Input/output error: '/x/zero_pp_rank_1_mp_rank_03_optim_states.pt'"
    assert judged(tmp_path, {"job.log": steps(20) + traceback(error)}).verdict.culprits.ranks == ()


TORCHELASTIC = (
    "[default] Rendezvous complete for workers. Result:\n  restart_count=0\n  group_rank={node}\n"
    "  group_world_size=3\n  local_ranks=[0, 1, 2, 3]\n  global_ranks=[{ranks}]\n"
)


@pytest.mark.parametrize(
    "told",
    [
        TORCHELASTIC,
        "+ torchrun --nnodes=3 --nproc_per_node=4 --node_rank={node} --master_addr=a1 train.py\n",
        "+ accelerate launch --num_processes 12 --num_machines 3 --machine_rank {node} train.py\n",
        "cmd: python -m torch.distributed.run --nproc-per-node 4 --node-rank {node} train.py\n",
    ],
)
@pytest.mark.parametrize("in_one_file", [True, False])
def test_a_local_rank_counts_from_its_nodes_first(tmp_path: Path, told: str, in_one_file: bool) -> None:
    files: dict[str, str] = {}
    for node in range(3):
        text = told.format(node=node, ranks=", ".join(str(4 * node + n) for n in range(4)))
        text += "".join(f"[default{n}]:step {s} loss 2.0\n" for s in range(6) for n in range(4))
        if node == 1 and not in_one_file:
            text += behind("[default2]:", TYPE_ERROR)
        name = "job.log" if in_one_file else f"output-m{7 + 4 * node}.log"
        files[name] = files.get(name, "") + (behind(f"gb-{7 + 4 * node}: ", text) if in_one_file else text)
    if in_one_file:
        files["job.log"] += behind("gb-11: [default2]:", TYPE_ERROR)
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.type", (6,))
    assert not in_one_file or body.culprits.hosts == ("gb-11",)


SPAWNED = "-- Process 5 terminated with the following error:\n" + TYPE_ERROR


@pytest.mark.parametrize(
    ("before", "after", "rank"),
    [
        ("", "", 5),
        ("", "srun: error: v-c04: task 13: Exited with exit code 1\n", 13),
        ("+ python -m torch.distributed.run --nproc_per_node 8 --node_rank 2 train.py\n", "", 21),
    ],
)
def test_spawn_counts_its_own_nodes_processes(tmp_path: Path, before: str, after: str, rank: int) -> None:
    body = judged(tmp_path, {"job.log": before + steps(20) + SPAWNED + after}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.type", (rank,))


@pytest.mark.parametrize("number", [0, 2])
def test_spawn_tells_whom_a_signal_ended(tmp_path: Path, number: int) -> None:
    text = "".join(f"[ox7:{n}/3] {clock(n)} (main:12) INFO: built the model\n" for n in range(3))
    text += "".join(f"[ox7:0/3] {clock(10 * n)} (main:40) INFO: step {n} loss 2.1\n" for n in range(1, 30))
    error = (
        f"torch.multiprocessing.spawn.ProcessExitedException: process {number} terminated with signal SIGKILL"
    )
    text += traceback(error, "join", "/lib/torch/multiprocessing/spawn.py")
    body = judged(tmp_path, {"job.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("process.killed", (number,))


@pytest.mark.parametrize(
    ("label", "read"),
    [
        ("[ox7:2/4]", ("ox7", 2)),
        ("[ox-7.lab:0/1]", ("ox-7.lab", 0)),
        ("[ox7:4/4]", (None, None)),
        ("[epoch3:1/4]", (None, None)),
        ("[train:1/4]", (None, None)),
    ],
)
def test_a_label_of_host_rank_and_size(label: str, read: tuple[str | None, int | None]) -> None:
    head = Head()
    read_labels(f"{label} 2026-01-31 08:00:00,000 (main:1) INFO: x", 0, Columns(), head)
    assert (head.host, head.rank) == read


def test_composes_labels_are_the_machines_that_launchers_name(tmp_path: Path) -> None:
    report = (
        "=====\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-01-31_08:01:40\n"
        "  host      : lab-gpu-9\n  rank      : 9 (local_rank: 1)\n  exitcode  : 1 (pid: 7)\n=====\n"
    )
    text = "".join(
        behind(f"node{node}  | ", f"[rank{8 * node}] step {n} loss 2.1") for n in range(30) for node in (0, 1)
    )
    text += behind("node1  | ", behind("[rank9]: ", TYPE_ERROR) + report)
    body = judged(tmp_path, {"compose.log": text}).verdict
    assert body.failure_type == "code.type"
    assert (body.culprits.ranks, body.culprits.hosts) == ((9,), ("lab-gpu-9",))


def test_the_one_rank_whose_host_is_told_is_placed(tmp_path: Path) -> None:
    waited = "".join(
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran "
        "for 600012 milliseconds before timing out.\n"
        for rank in range(16)
        if rank != 11
    )
    trace = (
        "Collective: sequence 9 ALLREDUCE joined by ranks {0,1,2,3,4,5,6,7,8,9,10,12,13,14,15}, "
        "missing ranks {11}\nRank 11: pool-b-7 pid 99, last entry state: completed\n"
    )
    body = judged(tmp_path, {"train.log": steps(30) + waited, "fr_trace.txt": trace}).verdict
    assert body.failure_type == "collective.timeout"
    assert (body.culprits.ranks, body.culprits.hosts) == ((11,), ("pool-b-7",))


def test_a_worker_beside_a_master_that_left_no_log(tmp_path: Path) -> None:
    text = "MASTER_ADDR=ocr-master-0 MASTER_PORT=23456\n" + steps(30) + TYPE_ERROR
    body = judged(tmp_path, {"ocr-worker-0.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.type", (1,))


@pytest.mark.parametrize(
    ("last", "failure_type"),
    [("Completed", "none.completed"), ("Running", "none.running")],
)
def test_a_job_all_of_whose_pods_completed_ended_well(tmp_path: Path, last: str, failure_type: str) -> None:
    rows = "NAME           READY   STATUS      RESTARTS   AGE\n" + "".join(
        f"ocr-worker-{at}   0/1     {last if at == 2 else 'Completed':9}   0          5h\n" for at in range(3)
    )
    body = judged(tmp_path, {"ocr-worker-0.log": steps(30), "pods.txt": rows}).verdict
    assert body.failure_type == failure_type
