"""Which rank and host it was, by what launchers and collectors of logs put around what processes say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, findings, judged, reading, steps, traceback

ERROR = traceback("KeyError: 'weights'")
HEALTHY = "step 7 loss 2.5\n"
CLOSED = (
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited "
    "or there was a network error, NCCL version 2.20.5\n"
)


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def logcli(pod: str, text: str) -> str:
    """What `logcli query -o jsonl` prints of a pod's lines."""
    return "".join(
        json.dumps({"labels": {"app": "llm", "pod": pod}, "timestamp": "2026-01-31T08:01:00Z", "line": line})
        + "\n"
        for line in text.splitlines()
    )


def ray(pid: int, ip: str, text: str) -> str:
    return behind(f"(RayTrainWorker pid={pid}, ip={ip}) ", text)


def swarm(slot: int, host: str, text: str) -> str:
    return behind(f"llm_trainer.{slot}.k{slot}x9q@{host}    | ", text)


def shipped(host: str, text: str) -> str:
    return behind(f"2026-01-31T08:01:00.000000Z {host} trainer stdout F ", text)


RAY_WORKERS = "".join(
    ray(700 + rank, f"10.0.0.{rank // 2}", f"world_rank={rank} local_rank={rank % 2} python=3.11\n")
    for rank in range(6)
)
SNIPPET = "TrainingFailedError: Training failed due to worker errors:\n[Rank 3 Error Snippet]:\n"
PADDLE = (
    "LAUNCH INFO 2026-01-31 08:01:01,000 Pod failed\n"
    "LAUNCH ERROR 2026-01-31 08:01:01,000 Container failed !!!\n"
    "Container rank {rank} status failed cmd ['python', '-u', 'run.py'] code 1 log log/workerlog.{local}\n"
)
PSSH = "".join(
    f"[{at}] 08:01:0{at} [FAILURE] cn-{at} Exited with error code 1\nStderr: {text}"
    for at, text in enumerate((ERROR, CLOSED, CLOSED, CLOSED), 1)
)

CASES: dict[str, tuple[Mapping[str, str], tuple[int, ...], tuple[str, ...]]] = {
    "Loki's client": (
        {"export.jsonl": "".join(logcli(f"llm-{pod}", f"[rank{pod}]: {HEALTHY}" * 9) for pod in range(4))
         + logcli("llm-2", behind("[rank2]: ", ERROR))},
        (2,), ("llm-2",)),
    "a Ray worker says its rank": (
        {"job.log": RAY_WORKERS + ray(704, "10.0.0.2", ERROR)}, (4,), ("10.0.0.2",)),
    "Ray Train quotes a rank": ({"job.log": RAY_WORKERS + SNIPPET + ERROR}, (3,), ("10.0.0.1",)),
    "a swarm's tasks": (
        {"service.log": "".join(swarm(at, f"cn-{at}", f"[rank{at}]: {HEALTHY}" * 9) for at in range(1, 4))
         + swarm(3, "cn-3", behind("[rank3]: ", ERROR))},
        (3,), ("cn-3",)),
    "a shipper's node and container": (
        {f"cn-{host}.log": shipped(f"cn-{host}", f"[rank{8 * host}]: step 7 loss 2.5\n" * 9
         + (behind("[rank17]: ", ERROR) if host == 2 else "")) for host in range(3)},
        (17,), ("cn-2",)),
    "parallel-ssh": ({"pssh.out": PSSH}, (), ("cn-1",)),
    "Paddle's launcher": (
        {f"10.0.0.{node}/log/{name}": text for node in (4, 5) for name, text in {
            "workerlog.0": steps(20),
            "workerlog.3": steps(20) + (ERROR if node == 5 else ""),
            "launch.log": "LAUNCH INFO 2026-01-31 08:00:00,000 nnodes: 2\n"
            + (PADDLE.format(rank=11, local=3) if node == 5 else "")}.items()},
        (11,), ("10.0.0.5",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_key_error_is_placed_by_what_stands_around_it(tmp_path: Path, name: str) -> None:
    files, ranks, hosts = CASES[name]
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "code.key"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == (ranks, hosts)


@pytest.mark.parametrize(
    "complaint", ["Rank 3 failed to pass monitoredBarrier in 600000 ms", "rank 3 has not entered the barrier"]
)
def test_who_complains_of_a_rank_does_not_place_it(complaint: str) -> None:
    text = "".join(f"[cn-{rank // 4}] rank {rank} starts\n" for rank in range(8) if rank != 5)
    text = text.replace("[cn-0] rank 3 starts\n", "") + f"[cn-1] {complaint}\n"
    assert findings(reading("all.log", text)).topology.host_of_rank.get(3) != "cn-1"


def test_the_slow_rank_of_the_host_whose_gpu_is_hot_is_named(tmp_path: Path) -> None:
    def journal(host: str, rank: int, own: int) -> str:
        return "".join(
            f"Jan 31 08:{at:02d}:00 node-{host} run[7]: [step={at}] rank {rank} compute_ms: {own} "
            f"wait_ms: {905 - own}\n"
            for at in range(20)
        )

    hot = "Jan 31 08:20:00 node-b dcgm[9]: There were thermal violations totaling 9.5 seconds for GPU 0\n"
    files = {
        "journal_node-a.txt": journal("a", 0, 300) + journal("a", 1, 300),
        "journal_node-b.txt": journal("b", 4, 900) + journal("b", 5, 300) + hot,
        "journal_node-c.txt": journal("c", 8, 300) + journal("c", 9, 300),
    }
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "gpu.thermal_power"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((4,), ("node-b",))


def test_a_slingshot_link_that_broke_places_the_fault_on_its_node(tmp_path: Path) -> None:
    verdict = judged(
        tmp_path,
        {
            "job.out": "".join(behind(f"{rank}: ", steps(9)) for rank in range(4)) + behind("1: ", CLOSED),
            "console_cn-2.log": "".join(
                f"2026-01-31T08:00:{at} cn-2 kernel: {told}\n"
                for at, told in (
                    (10, "Lustre: scratch: Connection restored"),
                    (20, "cxi_ss1 0000:21:00.0: cxi0[hsn0] CXI_EVENT_LINK_DOWN"),
                )
            ),
        },
    ).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("network.infiniband", ("cn-2",))
