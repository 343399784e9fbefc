"""Hosts by the names that schedulers, clouds and launchers give them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, judged, place


def steps(rank: int, last: int) -> str:
    return "".join(f"2026-05-01 10:{at:02d}:00 rank {rank} step {at} loss 2.1\n" for at in range(last))


def test_the_node_of_a_task_stands_above_its_events(tmp_path: Path) -> None:
    status = (
        "ID         = 5d0e77aa-1\nNode Name  = rack4-c\nClient Status = failed\n\nRecent Events:\n"
        "2026-05-01T10:31:00Z  Terminated  "
        'Exit Code: 137, Exit Message: "OOM Killed"\n'
    )
    peers = "rank 8 up on rack4-b\n" + steps(8, 30)
    found = judged(tmp_path, {"status_5d0e.txt": status, "task_a.stderr": peers}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("host.out_of_memory", ("rack4-c",))


def test_the_prolog_that_failed_names_its_node(tmp_path: Path) -> None:
    log = (
        "[2026-05-01T10:00:01.000] sched: Allocate JobId=77 NodeList=q[1-4] #CPUs=64 Partition=gpu\n"
        "[2026-05-01T10:00:09.000] error: validate_node_specs: Prolog or job env setup failure on node q3, "
        "draining the node\n[2026-05-01T10:00:09.100] JobId=77 launch failed, requeued and held\n"
    )
    found = judged(tmp_path, {"slurmctld.log": log}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("scheduler.launch", ("q3",))


def test_flux_names_the_node_that_it_lost(tmp_path: Path) -> None:
    out = steps(0, 30) + (
        "1801.220s: job.exception type=node-failure severity=0 "
        "lost contact with job shell on corona77 (rank 2)\n"
    )
    found = judged(tmp_path, {"flux-f2xA.out": out}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("host.node_lost", ("corona77",))


def test_an_agents_local_rank_is_the_rank_of_its_summary(tmp_path: Path) -> None:
    agent = (
        "E0501 10:30:02.000000 900 torch/distributed/elastic/multiprocessing/api.py:869] failed "
        "(exitcode: -11) local_rank: 3 (pid: 611) of binary: /usr/bin/python\n"
        "=====\ntrain.py FAILED\n-----\nRoot Cause (first observed failure):\n[0]:\n"
        "  time      : 2026-05-01_10:30:01\n  host      : ab-c9\n  rank      : 27 (local_rank: 3)\n"
        "  exitcode  : -11 (pid: 611)\n  error_file: <N/A>\n"
        "  traceback : Signal 11 (SIGSEGV) received by PID 611\n=====\n"
    )
    found = judged(tmp_path, {"node_ab-c9.log": steps(24, 30) + agent}).verdict
    assert found.culprits.ranks == (27,)
    assert found.culprits.hosts == ("ab-c9",)


def test_what_mpirun_gathered_is_of_the_hosts_that_ranks_name(tmp_path: Path) -> None:
    tagged = "".join(
        f"[1,{rank}]<stdout>:rank {rank}/8 local {rank % 4} host bert-worker-{rank // 4} up\n"
        for rank in range(8)
    )
    tagged += "".join(f"[1,0]<stdout>:step {at} loss 2.1\n" for at in range(30))
    tagged += "[1,6]<stderr>:RuntimeError: CUDA error: an illegal memory access was encountered\n"
    found = judged(tmp_path, {"bert-launcher-4xk2p.log": tagged}).verdict
    assert (found.culprits.ranks, found.culprits.hosts) == ((6,), ("bert-worker-1",))


def test_a_pod_that_was_drained_was_preempted(tmp_path: Path) -> None:
    events = (
        "LAST SEEN   TYPE      REASON      OBJECT                MESSAGE\n"
        "9m          Normal    Scheduled   pod/sft-worker-1      "
        "Successfully assigned ml/sft-worker-1 to pool-d4\n"
        "3m          Normal    Drain       node/pool-d4          Draining node for an upgrade of its image\n"
        "3m          Normal    Evicted     pod/sft-worker-1      Evicted by eviction API (grace period 60s)\n"
    )
    found = judged(tmp_path, {"events.txt": events, "sft-worker-1.log": steps(8, 30)}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("scheduler.preempted", ("pool-d4",))


def test_a_node_is_called_what_stands_behind_the_word_node(tmp_path: Path) -> None:
    fault = "[rank9]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    found = judged(tmp_path, {"node_qx-a.log": steps(0, 30), "node_qx-b.log": steps(9, 30) + fault}).verdict
    assert (found.culprits.ranks, found.culprits.hosts) == ((9,), ("qx-b",))


def test_who_had_a_nan_of_its_own_before_all_stopped(tmp_path: Path) -> None:
    def said(second: int, rank: int, message: str) -> str:
        return f"2026-05-01 10:40:{second:02d},000 [rank={rank}] WARNING {message}\n"

    own = said(1, 6, "NaN detected in loss of this micro-batch")
    ends = "".join(
        said(9 + at, rank, "FloatingPointError: grad norm is nan at step 30, stopping")
        for at, rank in enumerate((3, 0, 6, 11))
    )
    log = "".join(said(0, 0, f"step {at} loss 2.1") for at in range(30)) + own + ends
    found = judged(tmp_path, {"train.log": log}).verdict
    assert (found.failure_type, found.culprits.ranks) == ("numerics.nan", (6,))


def test_a_container_that_never_told_its_rank_is_known_to_compose(tmp_path: Path) -> None:
    log = "Attaching to w-1-1, w-2-1\n"
    log += "".join(f"w-1-1  | [rank{at % 4}] step {at} loss 2.1\n" for at in range(30))
    log += "w-2-1  | ModuleNotFoundError: No module named 'flash_attn'\nw-2-1 exited with code 1\n"
    log += "w-1-1  | [rank0]: torch.distributed.DistStoreError: Timed out waiting for clients.\n"
    found = judged(tmp_path, {"compose.log": log}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("code.import", ("w-2-1",))


JOINED = "[INFO] [rdzv_manager.py:210:log] Completed 2 round rendezvous of elastic-training is {}\n"
SETTINGS = (
    "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:\n"
    "  entrypoint       : train.py\n  min_nodes        : 3\n  max_nodes        : 3\n  nproc_per_node   : 4\n"
)


def paced(node: int, slow: int) -> str:
    own, wait = (9.1, 0.3) if node == slow else (3.0, 6.4)
    return "".join(
        f"{clock(60.0 * at)} INFO iter {at * 10} loss 2.1 iter_time 9.5s forward {own}s sync_wait {wait}s\n"
        for at in range(1, 25)
    )


@pytest.mark.parametrize(
    ("stated", "each", "expected"),
    [
        (JOINED.format("{0: 4, 1: 4, 2: 4}"), "", ((), ("worker-1",))),
        (JOINED.format("{0: 1, 1: 1, 2: 1}"), "", ((1,), ())),
        ("", SETTINGS, ((), ("worker-1",))),
        ("", SETTINGS.replace(": 4", ": 1"), ((1,), ())),
        (JOINED.format("{0: 4, 1: 4, 2: 4, 3: 4, 4: 4}"), "", ((1,), ())),  # of which some are not here
    ],
)
def test_files_that_are_numbered_as_nodes_of_several_processes_are_of_no_rank(
    tmp_path: Path, stated: str, each: str, expected: tuple[tuple[int, ...], tuple[str, ...]]
) -> None:
    files = {f"worker-{node}.log": each + paced(node, 1) for node in range(3)}
    assert place(tmp_path, {**files, "job-master.log": f"starting\n{stated}"}) == expected


def test_the_node_after_which_a_clouds_description_is_named_is_the_one_that_was_lost(tmp_path: Path) -> None:
    told = (
        '{\n  "jobs": [\n    {\n      "jobName": "seg",\n      "status": "FAILED",\n'
        '      "statusReason": "Host EC2 (instance i-09fe12ab34cd56ef7) terminated.",\n'
        '      "attempts": []\n    }\n  ]\n}\n'
    )
    files = {f"node{node}.log": "".join(f"epoch {at} loss 2.1\n" for at in range(30)) for node in range(3)}
    found = judged(tmp_path, {**files, "describe-jobs_node2.json": told}).verdict
    assert (found.failure_type, found.culprits.hosts) == ("host.node_lost", ("node2",))


def test_machines_that_an_inventory_counts_from_ten_on_are_no_ranks(tmp_path: Path) -> None:
    files = {f"gx-{number}.log": paced(number, 12) for number in range(10, 14)}
    assert place(tmp_path, files) == ((), ("gx-12",))
