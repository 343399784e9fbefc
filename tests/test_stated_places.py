"""Ranks and machines that launchers, transports and prompts state, of those that never spoke themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, judged, place, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


WORLD = "{'bio-1': [0, 1, 2], 'bio-2': [0, 1, 2], 'bio-3': [0, 1, 2]}"
WAITED = (
    "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 6/9 clients joined."
)


@pytest.mark.parametrize(
    ("words", "host"),
    [
        ("bash: line 1: /opt/envs/esm/bin/python: No such file or directory", "bio-3"),
        ("bash: Zeile 1: /opt/envs/esm/bin/python: Datei oder Verzeichnis nicht gefunden", "bio-3"),
        ("bash: 行 1: torchrun: 未找到命令", "bio-3"),
    ],
)
def test_a_host_where_nothing_could_be_started_has_the_ranks_that_were_meant_for_it(
    tmp_path: Path, words: str, host: str
) -> None:
    log = f"bio-3: {words}\npdsh@bio-1: bio-3: ssh exited with exit code 127\n"
    for node in (0, 1):
        label = f"bio-{node + 1}: [2026-01-31 08:00:0{node},118] [INFO] [launch.py:146:main] "
        log += f"{label}WORLD INFO DICT: {WORLD}\n{label}nnodes=3, num_local_procs=3, node_rank={node}\n"
    for node in (0, 1):
        log += behind(f"bio-{node + 1}: [rank{3 * node}]: ", traceback(WAITED))
    verdict = judged(tmp_path, {"out.txt": log}).verdict
    assert verdict.failure_type == "scheduler.launch"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((6, 7, 8), (host,))


def paddle(lists: list[list[str]], size: int = 8) -> str:
    head = (
        "ips: 10.2.0.5,10.2.0.6\n"
        f"    |                     PADDLE_TRAINERS_NUM                        {size}               "
        f"       |\n"
        "[2026/01/31 08:00:05] root INFO: train with paddle 2.4.2 and device Place(gpu:0)\n"
    )
    return head + "".join(
        f"server not ready, wait 3 sec to retry...\nnot ready endpoints:{endpoints}\n" for endpoints in lists
    )


def test_who_is_last_on_the_list_of_those_awaited_never_came(tmp_path: Path) -> None:
    own = [f"10.2.0.5:617{port}" for port in (1, 2, 3)]
    other = [f"10.2.0.6:617{port}" for port in range(4)]
    text = paddle([own + other, own[2:] + other, *[other] * 30])
    verdict = judged(tmp_path, {"workerlog.0": text}).verdict
    assert verdict.failure_type == "network.rendezvous"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((4, 5, 6, 7), ("10.2.0.6",))


def test_trainers_that_wait_and_then_train_are_well(tmp_path: Path) -> None:
    text = paddle([["10.2.0.6:6170"]] * 3) + steps(200)
    assert judged(tmp_path, {"workerlog.0": text}).verdict.failure_type == "none.running"


def qp(host: str, rank: int, near: str, far: str) -> str:
    return (
        f"{host}:71:80 [0] NCCL INFO comm 0x1 rank {rank} nranks 4 cudaDev 0 busId 1000 - Init START\n"
        f"{host}:71:88 [0] misc/ibvwrap.cc:301 NCCL WARN Call to ibv_modify_qp failed with 110 "
        f"Connection timed "
        f"out, on dev mlx5_2:1, curr state INIT, next state RTR, local GID index 1, local GID {near}, "
        f"remote GID {far}\n"
    )


def test_the_end_that_all_failed_queue_pairs_share_is_the_one_at_fault(tmp_path: Path) -> None:
    gids = [f"::ffff:10.9.0.{number}" for number in (1, 2)] + ["fe80::a1b2:c3ff:fe04:5", "::ffff:10.9.0.4"]
    pairs = [(0, 2), (1, 2), (3, 2), (2, 1)]
    files = {
        f"dgx{rank}.log": qp(f"dgx{rank}", rank, gids[rank], gids[peer]) + behind(f"[rank{rank}]: ", LOST)
        for rank, peer in pairs
    }
    assert place(tmp_path, files) == ((2,), ("dgx2",))


LOST = traceback("torch.distributed.DistBackendError: NCCL error: unhandled system error")


def test_files_named_after_the_end_of_a_machine_are_of_the_machine_in_their_prompts(tmp_path: Path) -> None:
    files = {
        f"w-{at}.txt": f"(env) me@pod-5c1d-w-{at}:~/lm$ python run.py\n"
        + (traceback("RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already "
        "in use by "
                     "process with pid 77.") if at == 2 else "I0131 08:00:00.1 7 a.cc:1] waiting\n" * 3)
        for at in range(4)
    }  # fmt: skip
    assert place(tmp_path, files) == ((2,), ("pod-5c1d-w-2",))


def test_files_numbered_below_the_first_rank_of_their_node_count_on_that_node(tmp_path: Path) -> None:
    failed = "Container rank {} status failed cmd ['python', '-u', 'run.py'] code 1 log log/workerlog.{}\n"
    files = {
        "10.0.3.1/workerlog.0": steps(9),
        "10.0.3.1/workerlog.3": steps(9),
        "10.0.3.2/workerlog.1": steps(9) + traceback("KeyError: 'input_ids'"),
        "10.0.3.2/launch.log": "LAUNCH INFO 2026-01-31 08:00:00,000 nnodes: 2\n" + failed.format(5, 1),
    }
    assert place(tmp_path, files) == ((5,), ("10.0.3.2",))


STALL = (
    "[1,0]<stderr>:[2026-01-31 08:0{at}:00.600000: W "
    "/tmp/hvd/horovod/common/stall_inspector.cc:107] One or more "
    "tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for "
    "remainder of ranks for more than 60 seconds. This may indicate that different ranks are trying "
    "to submit "
    "different tensors or that only subset of ranks is submitting tensors, which will cause deadlock.\n"
    "[1,0]<stderr>:Missing ranks:\n"
    "[1,0]<stderr>:3: [allreduce.layer4.0.weight, allreduce.fc.bias, HorovodAllreduce_grads_7_0 ...]\n"
)


def test_horovods_list_below_its_warning_names_who_did_not_come(tmp_path: Path) -> None:
    log = "".join(f"[1,{rank}]<stdout>:hvd rank {rank} of 4 on cn-{rank // 2}\n" for rank in range(4))
    log += "".join(STALL.format(at=at) for at in range(2, 8))
    verdict = judged(tmp_path, {"train.log": log}).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("collective.timeout", (3,))


HUNG = (
    "[Sat Jan 31 08:03:00 2026] INFO: task python3:{pid} blocked for more than 120 seconds.\n"
    "[Sat Jan 31 08:03:00 2026] task:python3         state:D stack:    0 pid:{pid} ppid: 4000 "
    "flags:0x00000002\n"
    "[Sat Jan 31 08:03:00 2026] Call Trace:\n"
    "[Sat Jan 31 08:03:00 2026]  {frame}\n"
)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [("ptlrpc_set_wait+0x4a1/0x730 [ptlrpc]", "storage.filesystem"),
     ("os_acquire_rwlock_write+0x33/0x40 [nvidia]", "collective.timeout")],
)  # fmt: skip
def test_a_process_that_hangs_in_the_file_system_is_why_its_peers_wait(
    tmp_path: Path, frame: str, kind: str
) -> None:
    log = "".join(f"[1,{rank}]<stdout>:hvd rank {rank} of 4 on cn-{rank // 2}\n" for rank in range(4))
    log += "".join(STALL.format(at=at) for at in range(2, 8))
    files = {"train.log": log, "dmesg_cn-1.txt": HUNG.format(pid=4117, frame=frame)}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == (kind, (3,))


def test_a_killed_compiler_is_of_the_rank_that_raised_below_it(tmp_path: Path) -> None:
    waits = (
        "2026-Jan-31 08:1{at}:00.0210 71:90 [3] bootstrap.cc:89 CCOM WARN Timeout waiting for "
        "incoming connection (waited 120 sec)\n"
    )
    killed = (
        "[F137] neuronx-cc was forcibly killed - This most commonly occurs due to insufficient "
        "system memory.\n"
    )
    lost = (
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [10.0.5.9]:22"
    )
    files = {
        "ip-10-0-5-8.log": behind("[rank2]: ", traceback(lost)) + waits.format(at=1) * 3,
        "ip-10-0-5-9.log": "Compiler status PASS\n" + killed
        + behind("[rank37]: ", traceback("RuntimeError: compilation failed with 70. Check compiler logs.")),
    }  # fmt: skip
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "host.out_of_memory"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((37,), ("ip-10-0-5-9",))


def test_a_rollout_server_counts_its_workers_apart_from_the_trainer(tmp_path: Path) -> None:
    server = "".join(
        f"(Worker rank={rank} pid=9{rank}) ERROR 01-31 08:01:00 [executor.py:522] OSError: "
        f"/lib64/libc.so.6: "
        "version `GLIBC_2.38' not found (required by /opt/lib/libnccl.so.2)\n"
        for rank in range(4)
    )
    waited = (
        "[E131 08:06:00.089 socket.cpp:1023] [c10d] The client socket has timed out after 300000ms "
        "while trying to connect to (0.0.0.0, 51216).\n"
    )
    gave_up = "".join(
        f"[rank{rank}]:[E131 08:16:00.10{rank} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog "
        f"caught collective "
        "operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran "
        "for 600011 milliseconds before timing out.\n"
        for rank in (1, 2, 3)
    )
    files = {"rollout.log": server, "train.log": waited + gave_up}
    assert judged(tmp_path, files).verdict.failure_type == "code.import"
