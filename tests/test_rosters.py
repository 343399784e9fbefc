"""Hosts that launchers, lists and labels name, and the ranks that run on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import bank_read_once, behind, clock, judged, reading, steps, traceback

from logtriage.localize.headings import Headings, headings
from logtriage.localize.rosters import Roster, expanded, in_blocks, is_host

IMPORT = "ModuleNotFoundError: No module named 'einops'"
FULL = "OSError: [Errno 28] No space left on device: '/scratch/a'"


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def interleaved(hosts: tuple[str, ...], line: str) -> str:
    return "".join(f"{clock(n)} {line.format(host=host, n=n)}\n" for n in range(12) for host in hosts)


JOBS: dict[str, tuple[Mapping[str, str], tuple[int, ...], tuple[str, ...]]] = {
    "each rank of mpirun says once where it runs": (
        {
            "mpi.log": "".join(f"[1,{r}]<stdout>:cn{r // 2:02d} rank {r}: torch 2.4.0\n" for r in range(6))
            + behind("[1,3]<stderr>:", traceback(IMPORT)),
        },
        (3,),
        ("cn01",),
    ),
    "a launcher tells the ranks of each host": (
        {
            "all.log": "".join(
                f"m{at}: [INFO] starting 4 procs, ranks {at * 4}-{at * 4 + 3}\n" for at in range(3)
            )
            + steps(20)
            + behind("[rank9]: ", traceback(IMPORT)),
        },
        (9,),
        ("m2",),
    ),
    "each host says which ranks are up": (
        {
            "all.log": "".join(
                f"[{clock(at)}][I][join:88] m{at}-x ranks {at * 4}..{at * 4 + 3} ready\n" for at in range(3)
            )
            + steps(20)
            + behind("[rank9]: ", traceback(IMPORT)),
        },
        (9,),
        ("m2-x",),
    ),
    "rows of what each rank took end with its host": (
        {
            "all.log": "".join(f"  Rank {rank}: {rank + 71}.3ms  (cn-{rank // 4})\n" for rank in range(12))
            + steps(20)
            + behind("[rank9]: ", traceback(IMPORT)),
        },
        (9,),
        ("cn-2",),
    ),
    "lines that begin with an address and a number": (
        {
            "console.log": interleaved(("10.8.0.3", "10.8.0.9", "10.8.0.7"), "{host} [0] step {n} loss 2.1")
            + behind(f"{clock(14)} 10.8.0.9 [1] ", traceback(IMPORT)),
        },
        (),
        ("10.8.0.9",),
    ),
    "lines that begin with a task's name, in which the host alone differs": (
        {
            "bench.log": interleaved(("vit.ca-11.nolog", "vit.ca-12.nolog"), "{host} [stdout] step {n}")
            + behind("vit.ca-12.nolog [stderr] [rank5]: ", traceback(IMPORT)),
        },
        (5,),
        ("ca-12",),
    ),
    "SageMaker's hosts in front of mpirun's labels": (
        {
            "stream.log": behind("[algo-1] [1,mpirank:0,algo-1]<stdout>:", steps(12))
            + behind("[algo-1] [1,mpirank:5,algo-2]<stderr>:", traceback(FULL)),
        },
        (5,),
        ("algo-2",),
    ),
    "the hosts of mpirun's option, rank by rank": (
        {
            "algo-1.log": "mpirun --host algo-1:4,algo-2:4 -np 8 --tag-output python t.py\n"
            + behind("[1,0]<stdout>:", steps(12))
            + "".join(behind(f"[1,{rank}]<stderr>:", traceback(IMPORT)) for rank in (5, 6)),
            "algo-2.log": f"{clock(0)} sagemaker-training-toolkit INFO Waiting for MPI process to finish\n",
        },
        (5, 6),
        ("algo-2",),
    ),
    "Slurm's node list and the number of tasks": (
        {
            "env.txt": "SLURM_JOB_NODELIST=ga[09-11]\nSLURM_NTASKS_PER_NODE=4\nHOME=/home/u\nLANG=C\n",
            "train.out": behind("[rank0]: ", steps(12)) + behind("[rank6]: ", traceback(IMPORT)),
        },
        (6,),
        ("ga10",),
    ),
    "a pod's name as its records say it": (
        {
            "export.jsonl": "".join(
                f'{{"ts": "2026-01-31T08:00:{n:02d}Z", "pod": "sft-{r // 2}", "rank": {r}, '
                f'"msg": "step={n} loss=2.1"}}\n'
                for n in range(1, 12)
                for r in range(4)
            )
            + '{"ts": "2026-01-31T08:00:30Z", "pod": "sft-1", "rank": 2, "level": "error", '
            '"msg": "IndexError: list index out of range"}\n'
        },
        (2,),
        ("sft-1",),
    ),
    "a folder of the host that its launcher names, with its kernel log": (
        {
            f"node-{at}/train.log": steps(12)
            + (traceback(IMPORT) if at else "")
            + "=====\nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n"
            f"  time      : 2026-01-31_08:01:4{1 - at}\n  host      : vx-3{at}\n"
            f"  rank      : {at} (local_rank: 0)\n"
            f"  exitcode  : {1 if at else -15} (pid: 4{at})\n  error_file: <N/A>\n=====\n"
            for at in (0, 1)
        }
        | {f"node-{at}/dmesg": "[Sat Jan 31 07:00:00 2026] usb 1-1: new device\n" for at in (0, 1)},
        (1,),
        ("vx-31",),
    ),
    "labels of host and rank": (
        {
            "run.out": "".join(
                f"[nq{5 + r // 2:03d}:{r}]: step {n} loss 2.1\n" for n in range(1, 9) for r in range(4)
            )
            + behind("[nq006:3]:", traceback(IMPORT)),
        },
        (3,),
        ("nq006",),
    ),
    "whom a detector of stragglers names, not who prints it": (
        {
            "rank0.log": behind("[rank0]: ", steps(20))
            + "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: "
            "{StragglerId(rank=13, node='pl-17')}\n" + behind("[rank0]: ", steps(20, first=21))
        },
        (13,),
        ("pl-17",),
    ),
    "the process of Ray's that died, by its address and number": (
        {
            "driver.log": "".join(
                f"(Actor pid={300 + r}, ip=10.4.0.{1 + r // 2}) s.py:3 - [Rank {r}] step {n} done\n"
                for n in range(1, 9)
                for r in range(4)
            )
            + "(raylet) A worker died or was killed while executing a task by an unexpected system error. "
            "Worker ID: 5d Worker IP address: 10.4.0.2 Worker port: 10043 Worker PID: 302 Worker exit type: "
            "SYSTEM_ERROR\n"
        },
        (2,),
        ("10.4.0.2",),
    ),
    "a container that did not start on the host of its tasks": (
        {
            "slurm-9.out": "".join(
                f"{t}: rank {t} waiting for the others\n" * 3 for t in range(6) if t not in (2, 3)
            )
            + "".join(f"{t}: slurmstepd: error: pyxis: couldn't start container\n" for t in (2, 3))
            + "srun: error: hk12: tasks 2-3: Exited with exit code 1\n"
            "srun: error: hk11: tasks 0-1: Terminated\n"
        },
        (2, 3),
        ("hk12",),
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_host_is_named(tmp_path: Path, name: str) -> None:
    files, ranks, hosts = JOBS[name]
    culprits = judged(tmp_path, files).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == (ranks, hosts)


def test_the_one_host_of_a_hostfile_that_never_joined(tmp_path: Path) -> None:
    waiting = traceback("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError")
    files = {f"q{at}.log": f"+ torchrun --nnodes=3 --node-rank={at} t.py\n{waiting}" for at in (1, 2)}
    files |= {"q3.log": "+ source activate\n", "hosts": "q1 slots=8\nq2 slots=8\nq3 slots=8\n"}
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.hosts) == ("network.rendezvous", ("q3",))


def test_a_pods_own_limit_is_its_own_whatever_end_its_name_has(tmp_path: Path) -> None:
    files = {f"pods/lm-workers-0-{at}.log": steps(20) for at in (0, 1)} | {
        "describe.txt": "Name:             lm-workers-0-1-x3k1q\nNode:             gk-7/10.1.0.7\n"
        "Containers:\n  trainer:\n    State:          Terminated\n      Reason:       OOMKilled\n"
        "      Exit Code:    137\n"
    }
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.hosts) == ("host.out_of_memory", ("lm-workers-0-1",))


def test_a_list_of_slurm() -> None:
    assert expanded("a[08-10,12],b3,c[1-2]-ib") == ("a08", "a09", "a10", "a12", "b3", "c1-ib", "c2-ib")


@given(st.integers(2, 9), st.integers(2, 9), st.data())
def test_blocks_never_contradict_what_is_known(hosts: int, size: int, data: st.DataObject) -> None:
    names = tuple(f"h{at}" for at in range(hosts))
    known = data.draw(st.dictionaries(st.integers(0, hosts * size - 1), st.sampled_from(names), max_size=6))
    found = in_blocks(known, Roster(names, size), None, max(known, default=0))
    assert not found or all(found[rank] == host for rank, host in known.items())
    assert found or any(names[rank // size] != host for rank, host in known.items())


def test_two_of_four_hosts_are_not_taken_for_all() -> None:
    assert in_blocks({0: "a", 16: "c"}, Roster(), 32, 16) == {}


SMI = "    Clocks Event Reasons\n        HW Thermal Slowdown               : {}\n"


@pytest.mark.parametrize(
    "heading",
    [
        "=== tw{}-gpu 2026-01-31 09:00:00",  # long after the last step
        "##### tw{}-gpu #####",
        "tw{}-gpu | CHANGED | rc=0 >>",
        "$ ssh tw{}-gpu nvidia-smi -q",
        "[root@tw{}-gpu ~]# nvidia-smi -q",
        "----------------\ntw{}-gpu\n----------------",
        "=== nvidia-smi -q after the run, tw{}-gpu",
        "#### nvidia-smi on tw{}-gpu ####",
        "--- output of nvidia-smi (tw{}-gpu) ---",
    ],
)
def test_what_stands_below_a_hosts_heading_is_that_hosts(tmp_path: Path, heading: str) -> None:
    said = "".join(
        f"{heading.format(at)}\n==============NVSMI LOG==============\n"
        f"{SMI.format('Active' if at == 2 else 'Not Active')}"
        for at in (1, 2, 3)
    )
    body = judged(tmp_path, {"train.log": steps(20), "nvidia-smi-q.txt": said}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("gpu.thermal_power", ("tw2-gpu",))


@pytest.mark.parametrize(
    "prompt", ["ann@rk-{} ~ % ", "(env) ann@rk-{}:~/run$ ", "[ann@rk-{} ~]$ sudo ", "root@rk-{}:~# "]
)
def test_a_prompt_tells_where_a_machine_was_looked_at(tmp_path: Path, prompt: str) -> None:
    at = prompt.format(4)
    pasted = (
        f"{at.replace('sudo ', '')}python train.py\n{steps(20)}\n{at}dmesg | tail\n"
        "[  +0.000004] NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.\n"
    )
    body = judged(tmp_path, {"comment.txt": pasted}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("gpu.fell_off_bus", ("rk-4",))


def test_a_prompt_from_which_a_job_was_launched_is_not_its_host() -> None:
    lines = reading("a.log", f"ann@head-1:~$ srun python train.py\n{steps(5)}").lines
    assert headings(lines, (), of_job=True) == Headings()


def test_headings_of_stages_name_no_host() -> None:
    lines = reading("a.log", "=== stage2 ===\nx\n=== epoch3 ===\ny\n--- a/train2.py\n=== fp16 ===\n").lines
    assert headings(lines, (), of_job=True) == Headings()


def test_a_label_before_the_rank_names_the_machine(tmp_path: Path) -> None:
    def of(pod: str, *rest: str) -> str:
        return "".join(f"[{pod}] epoch 0 it {n} loss 2.5\n" for n in range(5)) + "".join(rest)

    lost = "[enc-w-{pod}] [rank{rank}]: RuntimeError: [1] NCCL communicator was aborted\n"
    own = behind("[enc-w-3] [rank6]: ", traceback(FULL))
    files = {"a.log": of("enc-w-2", lost.format(pod=2, rank=4)), "b.log": of("enc-w-3", own)}
    culprits = judged(tmp_path, files).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((6,), ("enc-w-3",))


def test_an_agent_that_a_rank_names_is_its_host(tmp_path: Path) -> None:
    begun = "".join(
        f"[2026-01-31 08:00:0{n}] [rank={n}] || INFO: trial runner on agent lab-{'xy'[n // 2]}\n"
        for n in range(4)
    )
    text = begun + behind("[2026-01-31 08:01:00] [rank=3] || ", traceback(FULL))
    culprits = judged(tmp_path, {"trial.log": text}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((3,), ("lab-y",))


def test_workers_of_a_pod_of_tpus(tmp_path: Path) -> None:
    begun = "".join(f"10.2.0.{n} [worker:{n - 4}] INFO starting\n" for n in range(4, 8))
    began = "".join(f"10.2.0.4 [worker:0] {line}\n" for line in steps(20).splitlines())
    failed = "Exception in device=TPU:21: [Errno 28] No space left on device\n" + traceback(FULL)
    text = begun + began + behind("10.2.0.6 [worker:2] ", failed)
    culprits = judged(tmp_path, {"pod.log": text}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((21,), ("10.2.0.6",))


def test_hosts_that_mpirun_came_to_know(tmp_path: Path) -> None:
    known = "".join(
        f"Warning: Permanently added 'glue-worker-{n}.glue,10.1.0.{n + 4}' (ED25519) to the list of known \n"
        for n in range(2)
    )
    well = "".join(f"[1,{n}]<stdout>:rank {n} on glue-worker-0 cuda:{n}\n" for n in range(4))
    none = "".join(f"[1,{n}]<stderr>:RuntimeError: No CUDA GPUs are available\n" for n in range(4, 8))
    culprits = judged(tmp_path, {"launcher.log": known + well + none}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((4, 5, 6, 7), ("glue-worker-1",))
    unknown = judged(tmp_path / "b", {"launcher.log": well + none}).verdict.culprits
    assert "glue-worker-0" not in unknown.hosts


def test_an_actor_of_ray_says_its_rank_at_the_start(tmp_path: Path) -> None:
    begun = "".join(
        f"(Actor pid={700 + n}, ip=10.5.0.{n // 2}) [2026-01-31 08:00:0{n},118] init rank {n} world 4\n"
        for n in range(4)
    )
    error = "RuntimeError: CUDA error: unspecified launch failure"
    task = "ray.exceptions.RayTaskError(RuntimeError): ray::Actor.fit() (pid=703, ip=10.5.0.1, actor_id=5a)\n"
    text = begun + "Traceback (most recent call last):\n" + task + f"    loss.backward()\n{error}\n"
    culprits = judged(tmp_path, {"driver.log": text}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((3,), ("10.5.0.1",))


def test_the_host_that_cannot_come_to_where_all_others_wait(tmp_path: Path) -> None:
    def of(number: int, end: str) -> str:
        return f"I0131 08:00:0{number}.1 90{number} api.py:194]   rdzv_endpoint    : pre-01.lab:29400\n{end}"

    waited = traceback("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError")
    lost = (
        "[W131 08:01:10.220 socket.cpp:752] [c10d] The IPv4 network addresses of (pre-01.lab, 29400) cannot "
        "be retrieved (gai error: -2 - Name or service not known).\n"
    )
    files = {f"pre-0{n}.out": of(n, lost * 3 if n == 3 else waited) for n in range(1, 5)}
    body = judged(tmp_path, files).verdict
    assert body.failure_type == "network.rendezvous"
    assert body.culprits.hosts == ("pre-03",)
    assert body.evidence[0].file == "pre-03.out"
    files["pre-03.out"] = of(3, waited)
    assert judged(tmp_path / "b", files).verdict.culprits.hosts == ()


def test_deepspeeds_launcher_counts_nodes_and_their_processes(tmp_path: Path) -> None:
    def of(node: int, *rest: str) -> str:
        begun = f"{clock(node)} [INFO] [launch.py:152:main] nnodes=3, num_local_procs=2, node_rank={node}\n"
        return behind(f"cx-{node + 7}: ", begun + "".join(rest))

    failed = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/home/a/zero.json'")
    text = of(0) + of(1, failed, failed) + of(2)
    culprits = judged(tmp_path, {"pdsh.log": text}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((2, 3), ("cx-8",))


def test_a_table_of_tasks_and_ec2s_names_of_machines(tmp_path: Path) -> None:
    table = "".join(f"task {n} = jx-b{n + 1}\n" for n in range(4))
    files = {f"task-{n}.log": steps(9) + (traceback(FULL) if n == 2 else "") for n in range(4)}
    culprits = judged(tmp_path / "jax", {**files, "hosts.txt": table}).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((2,), ("jx-b3",))

    begun = "".join(
        f"(Worker pid={330 + n}, ip=10.4.0.{11 + n // 2}) [Rank {n}] setting up [rank={n}, world_size=4]\n"
        for n in range(4)
    )
    xid = (
        "Jan 31 08:01:22 ip-10-4-0-12 kernel: NVRM: Xid (PCI:0000:38:00): 120, pid=333, name=ray::W, GSP "
        "task exception: Load access page fault\n"
    )
    quiet = "".join(f"Jan 31 08:00:{n:02d} ip-10-4-0-12 systemd[1]: Started Session {n}.\n" for n in range(9))
    files = {"job.log": begun + steps(9), "syslog-ip-10-4-0-12": quiet + xid}
    culprits = judged(tmp_path / "ray", files).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((3,), ("ip-10-4-0-12",))


@pytest.mark.parametrize("word", ["fp16", "bf16", "tf32", "FP8", "int8", "uint8", "float32", "nf4"])
def test_a_number_format_names_no_machine(word: str) -> None:
    assert not is_host(word)
