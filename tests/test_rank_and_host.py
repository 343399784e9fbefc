"""A host and a process, a device or a row of a list are known, and the rank follows from both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, place, steps, traceback

from logtriage.intake.identity import identify_all

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {gpu} has a total"
XID = "Jan 31 08:01:{second:02d} {host} kernel: NVRM: Xid (PCI:0000:5e:00): {xid}\n"
GSP = (
    "119, pid={pid}, name=python, Timeout after 6s of waiting for RPC response from GPU2 GSP! "
    "Expected function 76"
)
BUS = "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
CLOSED = (
    "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, "
    "remote process exited or there was a network error, NCCL version 2.20.5\n"
)


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def quiet(host: str) -> str:
    return "".join(f"Jan 31 08:00:{n:02d} {host} systemd[1]: Started Session {n}.\n" for n in range(9))


def spawned(number: int, error: str) -> str:
    return (
        traceback(error)
        + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
        + f"-- Process {number} terminated with the following error:\n"
        + traceback(error)
    )


def arguments(node: int) -> str:
    return (
        f'Namespace(config_file="a.py", dist_url="tcp://vx-a-1:5000", machine_rank={node}, num_gpus=2, '
        "num_machines=3)\n"
    )


def command(node: int) -> str:
    return f"+ train.py --num-machines 2 --machine-rank {node} --num-gpus 8 --dist-url tcp://big2:29\n"


def of_pdsh(first: Mapping[int, str], second: Mapping[int, str]) -> str:
    label = "{host}: [{rank}] "
    return "".join(
        behind(label.format(host=host, rank=rank), text)
        for host, texts in (("hz-5", first), ("hz-6", second))
        for rank, text in texts.items()
    )


IB = "NCCL WARN NET/IB : mlx5_{n}:1 Got async event : port error\n"
LINK = "Jan 31 08:01:00 {host} kernel: mlx5_core 0000:b9:00.0: mlx5_{n}: Port: 1 Link DOWN\n"
MODULE = "ModuleNotFoundError: No module named 'pyspng'"
SIZE = "Rank of current process: 0. World size: {size}\n"

JOBS: dict[str, tuple[Mapping[str, str], tuple[int, ...], tuple[str, ...]]] = {
    "a table of tasks with hosts and process ids": (
        {
            "placement.txt": "".join(
                f"task {n} host be-{n // 4 + 1:02d} gpu {n % 4} pid {7100 + n}\n" for n in range(8)
            ),
            "train_task0.log": steps(30),
            "be-02.kern.log": quiet("be-02") + XID.format(second=2, host="be-02", xid=GSP.format(pid=7106)),
        },
        (6,),
        ("be-02",),
    ),
    "ranks that are listed with their processes": (
        {
            "who.txt": "".join(f"rank {n} on ku{n // 2 + 10}, pid {n % 2 + 350}\n" for n in range(6)),
            "job.log": steps(30),
            "dmesg_ku11.log": quiet("ku11") + XID.format(second=2, host="ku11", xid=GSP.format(pid=351)),
        },
        (3,),
        ("ku11",),
    ),
    "files that are called after the number of a node and its name": (
        {
            f"node{n}_ocean-b{n + 3:02d}.log": (steps(30) if n == 0 else "")
            + behind("[rank3]: ", traceback("RuntimeError: CUDA error: unknown error")) * (n == 1)
            + CLOSED.format(rank=n * 2) * (n != 1)
            for n in range(3)
        }
        | {"ocean-b04.messages": quiet("ocean-b04") + XID.format(second=1, host="ocean-b04", xid=BUS)},
        (3,),
        ("ocean-b04",),
    ),
    "a process of spawn on the second of three machines": (
        {
            "vx-a-1/log.txt": arguments(0) + steps(30),
            "vx-a-2/log.txt": arguments(1) + spawned(1, OOM.format(gpu=1)),
            "vx-a-3/log.txt": arguments(2),
        },
        (3,),
        ("vx-a-2",),
    ),
    "a process of spawn where a command line counts GPUs by machine": (
        {
            "big2/train.log": command(0) + steps(30),
            "big3/train.log": command(1) + spawned(5, OOM.format(gpu=5)),
        },
        (13,),
        ("big3",),
    ),
    "the device of the only process of a host that speaks": (
        {
            "pdsh.out": behind("ra-1: ", steps(30))
            + behind("ra-2: ", f"ra-2:500:731 [5] transport/net_ib.cc:94 {IB.format(n=5)}")
            + behind("ra-2: ", CLOSED.format(rank=13))
            + behind("ra-1: ", CLOSED.format(rank=5))
            + behind("ra-3: ", CLOSED.format(rank=21)),
            "syslog-ra-2": quiet("ra-2") + LINK.format(host="ra-2", n=5),
        },
        (13,),
        ("ra-2",),
    ),
    "a device beside several ranks of its host": (
        {
            "all.out": behind("uw31: ", steps(30))
            + behind("uw32: ", f"uw32:90:91 [3] transport/net_ib.cc:94 {IB.format(n=3)}")
            + behind("uw32: ", CLOSED.format(rank=7) + CLOSED.format(rank=6))
            + behind("uw31: ", CLOSED.format(rank=3))
            + behind("uw33: ", CLOSED.format(rank=11) + CLOSED.format(rank=8)),
            "syslog-uw32": quiet("uw32") + LINK.format(host="uw32", n=3),
        },
        (7,),
        ("uw32",),
    ),
    "ranks in brackets behind hosts, of a job of a known size": (
        {
            "go.log": behind("hz-5: ", SIZE.format(size=4) + steps(3))
            + of_pdsh({}, {2: traceback(MODULE), 3: traceback(MODULE)})
        },
        (2, 3),
        ("hz-6",),
    ),
    "one of eight ranks in brackets behind hosts": (
        {
            "go.log": behind("hz-5: ", SIZE.format(size=8) + steps(3))
            + of_pdsh({1: "ready\n"}, {6: traceback(OOM.format(gpu=2))})
        },
        (6,),
        ("hz-6",),
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_rank_follows(tmp_path: Path, name: str) -> None:
    files, ranks, hosts = JOBS[name]
    culprits = judged(tmp_path, files).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == (ranks, hosts)


def test_numbers_that_each_node_counts_anew_are_no_ranks(tmp_path: Path) -> None:
    text = behind("hz-5: ", SIZE.format(size=8) + steps(3)) + of_pdsh(
        {2: "ready\n"}, {2: traceback(OOM.format(gpu=2))}
    )
    assert judged(tmp_path, {"go.log": text}).verdict.culprits.ranks != (2,)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("node2_cn-b07.log", "cn-b07"),
        ("host-11.gx-a100-3.out", "gx-a100-3"),
        ("node3_rank-2.log", "node3"),
        ("node1_step-400.log", "node1"),
    ],
)
def test_a_number_and_a_name_of_a_machine(name: str, host: str) -> None:
    assert identify_all([name])[name].host == host


@pytest.mark.parametrize(
    ("label", "says", "host"),
    [
        ("pretrain/0 [default1]:", "Rank 1, node mz-x9-04", "mz-x9-04"),
        ("sft.trainer/2 [1]:", "rank 1 on host quay17", "quay17"),
    ],
)
def test_a_replica_runs_on_the_machine_that_its_rank_names(
    tmp_path: Path, label: str, says: str, host: str
) -> None:
    error = (
        f"RuntimeError: {says}, device 1, iteration 7: Unexpected result nan "
        "(message='found NaN in local forward loss calculation')"
    )
    text = behind(label.split()[0] + " [0]:", steps(20)) + behind(f"{label}[rank1]: ", traceback(error))
    culprits = judged(tmp_path, {"out.log": text}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((1,), (host,))


@pytest.mark.parametrize(
    "row",
    [
        "rank {r:02d} pk-{h:02d} compute  {ms} comm_wait  {wait} optim 9",
        "rank={r} pk-{h:02d} forward={ms} sync={wait}",
    ],
)
def test_rows_of_values_name_the_host_behind_the_rank(tmp_path: Path, row: str) -> None:
    text = "".join(
        f"[{clock(n * 30)[:-4]}] step {n * 50} loss 2.1\n"
        + "".join(
            f"[{clock(n * 30)[:-4]}]   "
            + row.format(r=r, h=r // 4 + 1, ms=910 - r + 850 * (r == 6 < n), wait=50 + 850 * (r != 6 < n))
            + "\n"
            for r in range(12)
        )
        for n in range(1, 14)
    )
    culprits = judged(tmp_path, {"timers.log": text}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((6,), ("pk-02",))


HEAD = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n"
KILLED = (
    "{age}   Warning   OOMKilling   node/pool-b-77   "
    "Memory cgroup out of memory: Killed process 881 (python)\n"
)
ENDINGS = {
    "JobSet": (
        "44m   Normal   Restarting   jobset/emb   restarting jobset, attempt 1\n",
        "20s   Normal   AllJobsCompleted   jobset/emb   jobset completed successfully\n",
    ),
    "PyTorchJob": (
        "44m   Warning   PyTorchJobRestarting   pytorchjob/emb   PyTorchJob emb is restarting because 1 "
        "Worker replica(s) failed.\n",
        "20s   Normal   PyTorchJobSucceeded   pytorchjob/emb   PyTorchJob ml/emb successfully completed.\n",
    ),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_a_node_ran_out_of_memory_before_the_job_was_restarted_and_ended_well(
    tmp_path: Path, kind: str
) -> None:
    restarted, ended = ENDINGS[kind]
    done = {"worker-0.log": steps(40) + f"{clock(90)} INFO train: training finished, saved /out/final\n"}
    well = HEAD + KILLED.format(age="45m") + restarted + ended
    assert judged(tmp_path / "a", {**done, "events.txt": well}).verdict.failure_type == "none.completed"
    cut_off = {"worker-0.log": steps(40), "events.txt": HEAD + restarted + KILLED.format(age="9m")}
    assert judged(tmp_path / "b", cut_off).verdict.failure_type == "host.out_of_memory"


def test_files_tell_their_rank_though_a_library_heads_some_of_their_lines_with_it(tmp_path: Path) -> None:
    """Of three files two hold a watchdog's lines; the third, whose data was broken, holds none."""
    texts = {}
    for n in range(3):
        told = "".join(f"{clock(2 * k)} INFO loop - [rank {n}] step {k} loss 2.1\n" for k in range(40))
        waited = (
            f"[rank{n}]:[E131 08:40:00.100 ProcessGroupNCCL.cpp:616] [Rank {n}] Watchdog caught collective "
        )
        waited += (
            "operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 ms\n"
        )
        texts[f"out{n + 7}.txt"] = told + (traceback("zlib.error: Error -3 bad block") if n == 1 else waited)
    assert judged(tmp_path, texts).verdict.culprits.ranks == (1,)


@pytest.mark.parametrize("file", ["describe_lm-worker-2.txt", "events.txt"])
def test_where_a_pod_did_not_come_up_its_node_is_named(tmp_path: Path, file: str) -> None:
    described = (
        "Name:             lm-worker-2\nNamespace:        ml\nNode:             rack4-gpu9/10.2.0.9\n"
        "Status:           Pending\nEvents:\n  Type     Reason       Age   From     Message\n"
        '  Warning  FailedMount  68s   kubelet  MountVolume.SetUp failed for volume "shards" : '
        "rpc error: code = Internal desc = mount failed: exit status 32\n"
    )
    found = judged(tmp_path, {file: described}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("scheduler.launch", ("rack4-gpu9",))


def test_a_file_in_which_one_process_is_seen_to_join_but_others_write_is_not_its_own(tmp_path: Path) -> None:
    joined = "cn-{host}:{pid}:{pid} [{local}] NCCL INFO comm 0x5 rank {rank} nranks 16 - Init COMPLETE\n"
    reduced = "cn-{host}:{pid}:{pid} [{local}] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f count 64\n"
    files = {}
    for host in range(2):
        lines = []
        for local in range(8):
            told = {"host": host, "pid": 70 + local, "local": local, "rank": 8 * host + local}
            lines.append((joined if local == 3 else reduced).format(**told))
        text = "".join(lines) + steps(30)
        failed = "".join(
            f"[rank13]: {line}\n" for line in traceback("KeyError: 'source'", "mix").splitlines()
        )
        files[f"cn-{host}.log"] = text + (failed if host == 1 else "")
    assert place(tmp_path, files)[0] == (13,)


@pytest.mark.parametrize(("rank", "ranks"), [(6, (6,)), (0, ())])
def test_the_only_log_is_of_the_rank_that_each_of_its_steps_names(
    tmp_path: Path, rank: int, ranks: tuple[int, ...]
) -> None:
    text = "".join(f"{clock(9 * n)} DEBUG TRAIN step {n * 50} loss 2.{n}1 rank {rank}\n" for n in range(6))
    text += (
        "Traceback (most recent call last):\n"
        '  File "/asr/train.py", line 80, in <module>\n'
        "    for batch in loader:\n"
        "zlib.error: Error -3 while decompressing data: invalid distance too far back\n"
    )
    verdict = judged(tmp_path, {"train.log": text}).verdict
    assert verdict.failure_type == "data.corrupt"
    assert verdict.culprits.ranks == ranks
