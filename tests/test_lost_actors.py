"""Whose machine went away, where those who tell of it name an actor, an address or a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


GROUP = (
    "(TrainController pid=9) Started training worker group of size 3:\n"
    "(TrainController pid=9) - (ip=10.8.0.4, pid=70) world_rank=0, local_rank=0, node_rank=0\n"
    "(TrainController pid=9) - (ip=10.8.0.5, pid=71) world_rank=1, local_rank=0, node_rank=1\n"
    "(TrainController pid=9) - (ip=10.8.0.6, pid=72) world_rank=2, local_rank=0, node_rank=2\n"
)
ROWS = "\tclass_name: RayTrainWorker\n\tactor_id: c221\n\tpid: 72\n\tip: 10.8.0.6\n"
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
WORKER_GONE = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR "
    "Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n"
)
PREEMPTED = "\tthe actor's node was preempted: spot instance termination\n"


def culprits(folder: Path, files: dict[str, str]) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
    told = judged(folder, files).verdict
    return told.failure_type, told.culprits.ranks, told.culprits.hosts


@pytest.mark.parametrize(
    ("words", "failure_type"),
    [
        (DIED + ROWS + WORKER_GONE, "process.killed"),
        (
            DIED + ROWS + "The actor died because its node has died. Node Id: b1\n" + PREEMPTED,
            "scheduler.preempted",
        ),
    ],
)
def test_an_actor_died_where_its_address_stands(tmp_path: Path, words: str, failure_type: str) -> None:
    text = GROUP + behind("(RayTrainWorker pid=70, ip=10.8.0.4) ", steps(40))
    found = culprits(tmp_path, {"driver.log": text + behind("(TrainController pid=9) ", words)})
    assert found == (failure_type, (2,), ("10.8.0.6",))


def test_rows_of_an_actor_far_from_the_words_place_nothing(tmp_path: Path) -> None:
    text = GROUP + behind("(RayTrainWorker pid=70, ip=10.8.0.4) ", steps(40))
    words = behind("(TrainController pid=9) ", ROWS + "shutting down\n" + DIED + "bye\n" + WORKER_GONE)
    assert culprits(tmp_path, {"driver.log": text + words})[2] == ()


PODS = """NAME           READY   STATUS        RESTARTS   AGE   IP          NODE
ray-worker-a   1/1     Running       0          5h    10.8.0.4    steel-2
ray-worker-b   1/1     Running       0          5h    10.8.0.5    steel-4
ray-worker-c   1/1     Terminating   0          5h    10.8.0.6    steel-7
"""


def test_an_address_of_a_pod_is_a_node_and_a_node_lost_with_one_rank_is_that_rank(tmp_path: Path) -> None:
    text = GROUP + behind("(RayTrainWorker pid=70, ip=10.8.0.4) ", steps(40))
    text += (
        "(raylet) The node with node id: 5c0e and address: 10.8.0.6 and node name: 10.8.0.6 has been marked "
        "dead because the detector has missed too many heartbeats from it.\n"
    )
    assert culprits(tmp_path / "a", {"driver.log": text}) == ("host.node_lost", (2,), ("10.8.0.6",))
    files = {"driver.log": text, "kubectl_get_pods.txt": PODS}
    assert culprits(tmp_path / "b", files) == ("host.node_lost", (2,), ("steel-7",))


TASKS = ("10.9.1.20:2222", "10.9.1.21:2222", "10.9.1.22:2222")


@pytest.mark.parametrize(
    "given",
    [
        f"INFO:tensorflow:strategy with cluster_spec = {{'worker': {list(TASKS)}}}, task_id = 0\n",
        'TF_CONFIG={"cluster": {"worker": ["'
        + '", "'.join(TASKS)
        + '"]}, "task": {"type": "worker", "index": 0}}\n',
    ],
)
def test_a_remote_target_is_a_task_of_the_cluster(tmp_path: Path, given: str) -> None:
    end = (
        f"{clock(90)}: E tensorflow/core/common_runtime/ring_alg.cc:274] Aborting RingReduce with "
        "Unavailable: Collective ops is aborted by: Socket closed\n"
        "Additional GRPC error information from remote target /job:worker/replica:0/task:1:\n"
    )
    found = culprits(tmp_path, {"chief.log": given + steps(40) + end})
    assert found == ("collective.remote_error", (1,), ("10.9.1.21",))


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"
UNSUPPORTED = (
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display "
    "driver / cuda driver combination\n"
)


@pytest.mark.parametrize("words", [(MISMATCH, UNSUPPORTED), (UNSUPPORTED, MISMATCH)])
def test_a_drivers_fault_is_told_in_several_ways(tmp_path: Path, words: tuple[str, str]) -> None:
    said = "".join(f"{rank}: {text}" for rank, text in zip((4, 5), words, strict=True))
    ends = "srun: error: q-3: tasks 4-5: Exited with exit code 1\nsrun: error: q-1: tasks 0-1: Terminated\n"
    ends += "srun: error: q-2: tasks 2-3: Terminated\n"
    assert culprits(tmp_path, {"slurm-8.out": said + ends})[1:] == ((4, 5), ("q-3",))


@pytest.mark.parametrize(
    "form", ["{task}: host q-{task} ranks {first}..{last}\n", "{task}: node q-{task}: ranks {first}-{last}\n"]
)
def test_a_tasks_number_before_a_range_of_ranks_is_no_rank(tmp_path: Path, form: str) -> None:
    told = "".join(form.format(task=task, first=4 * task, last=4 * task + 3) for task in range(4))
    text = told + behind("3: ", steps(40))
    text += "0: [rank13]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    assert culprits(tmp_path, {"out.log": text})[1:] == ((13,), ("q-3",))


def test_a_drivers_fault_without_a_rank_is_that_of_those_who_met_it_on_that_host(tmp_path: Path) -> None:
    broken = MISMATCH + "".join(f"[rank{rank}]: {UNSUPPORTED}" for rank in range(4, 8))
    waited = "[rank0]: torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients.\n"
    found = culprits(tmp_path, {"node-q7.out": broken, "node-q6.out": waited})
    assert found == ("gpu.unavailable", (4, 5, 6, 7), ("node-q7",))


CODED = (
    "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64\n"
    "[ERROR] 2026-01-31-08:{minute:02}:54 (PID:{pid}, Device:{rank}, RankID:{rank}) "
    "ERR02200 DIST call hccl api failed.\n"
    "{code}: 2026-01-31-08:{minute:02}:54.167.645 {words}\n        Solution: see the manual.\n"
)


@pytest.mark.parametrize("rank", [1, 6])
def test_the_first_who_could_not_start_its_collectives_is_named_by_its_record(
    tmp_path: Path, rank: int
) -> None:
    held = "Failed to initialize the HCCP process. Reason: Maybe the last training process is running."
    text = CODED.format(minute=10, pid=70, rank=rank, code="EJ0001", words=held)
    text += "        tsd client wait response fail, device response code[1]. unknown device error.\n"
    for other in (0, 3, 5):
        text += CODED.format(minute=12, pid=71, rank=other, code="EI0006", words="Getting socket times out.")
    verdict = judged(tmp_path, {"train.log": steps(3) + text}).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("collective.init", (rank,))
    assert verdict.evidence[0].text.startswith("EJ0001: ")


@pytest.mark.parametrize("lost", ["workerpool0-0", "workerpool1-3"])
def test_what_a_service_tells_of_a_replica_is_no_machine_of_its_own(tmp_path: Path, lost: str) -> None:
    def entry(task: str, second: int, text: str) -> str:
        labels = f'{{"job_id": "7", "task_name": "{task}"}}'
        time = f"2026-03-02T10:00:{second:02}.000000Z"
        return (
            f'{{"textPayload": "{text}", "resource": {{"type": "ml_job", "labels": {labels}}}, '
            f'"severity": "INFO", "timestamp": "{time}"}}\n'
        )

    tasks = ("workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool1-2", "workerpool1-3")
    text = "".join(entry(task, at, f"step {at} loss 2.1") for at in range(30) for task in tasks)
    told = f"The replica {lost} ran out-of-memory and exited with a non-zero status of 137(SIGKILL)."
    assert culprits(tmp_path, {"logs.jsonl": text + entry("service", 40, told)})[2] == (lost,)


@pytest.mark.parametrize(("host", "first", "count"), [("q-3", 8, 4), ("cn12", 2, 2)])
def test_numbers_behind_one_host_that_begin_where_another_ended_are_ranks(
    tmp_path: Path, host: str, first: int, count: int
) -> None:
    missing = "OSError: libfoo.so.2: cannot open shared object file: No such file or directory\n"
    said = "".join(
        behind(
            f"[{host}:{first + at}] ", 'Traceback (most recent call last):\n  File "t.py", line 3\n' + missing
        )
        for at in range(count)
    )
    others = "".join(
        f"[W socket.cpp:697] [c10d] The client socket has failed to connect to [{other}]:29400\n"
        for other in ("q-1", "cn11")
    )
    files = {f"job.{host}.out": said, "job.q-1.out": others, "job.cn11.out": others}
    assert culprits(tmp_path / "a", files)[1] == tuple(range(first, first + count))
    own = said.replace(f":{first}]", ":77]")  # no block: these count something else
    assert culprits(tmp_path / "b", {**files, f"job.{host}.out": own})[1] == ()


@pytest.mark.parametrize(("resource", "used"), [("memory", "61 GiB"), ("ephemeral-storage", "98311220Ki")])
def test_of_a_file_the_line_that_says_most_is_cited(tmp_path: Path, resource: str, used: str) -> None:
    low = f"The node was low on resource: {resource}."
    events = (
        "LAST SEEN   TYPE      REASON    OBJECT           MESSAGE\n"
        f"14m         Warning   Evicted   pod/llm-worker-1  {low}\n"
    )
    described = (
        "Name:             llm-worker-1\nNode:             steel-7/10.8.0.6\nStatus:           Failed\n"
        f"Reason:           Evicted\nMessage:          {low} Container main was using {used}.\n"
    )
    files = {"events.txt": events, "describe_pod_llm-worker-1.txt": described, "llm-worker-0.log": steps(40)}
    verdict = judged(tmp_path, files).verdict
    cited = [each.text for each in verdict.evidence if each.file.startswith("describe")]
    assert used in cited[0]


GUESSES = (
    "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high "
    "memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or "
    "other unexpected errors.\n"
)


@pytest.mark.parametrize(("name", "ranks"), [("q8XWorkerDict_0:3", (3,)), ("q8XWorkerDict_1:3", ())])
def test_what_ray_guesses_is_not_told_as_seen_and_a_worker_of_the_first_group_is_its_place(
    tmp_path: Path, name: str, ranks: tuple[int, ...]
) -> None:
    rows = f"\tclass_name: WorkerDict\n\tactor_id: c3\n\tpid: 72\n\tname: {name}\n\tip: 10.8.0.6\n"
    text = steps(40) + DIED + rows + WORKER_GONE.rstrip("\n") + " " + GUESSES
    found = judged(tmp_path, {"driver.log": text}).verdict
    assert (found.failure_type, found.culprits.ranks) == ("process.killed", ranks)
    assert found.culprits.hosts == ("10.8.0.6",)
    assert "SIGKILL" not in found.title


def test_ray_introduces_its_workers_with_their_nodes_ids(tmp_path: Path) -> None:
    text = "(TorchTrainer pid=9) Started distributed worker processes:\n"
    text += "".join(
        f"(TorchTrainer pid=9) - (node_id=77ab, ip=10.8.0.4, pid={70 + n}) world_rank={n}, local_rank={n}, "
        "node_rank=0\n"
        for n in range(4)
    )
    text += "".join(behind("(RayTrainWorker pid=70) ", line) for line in steps(30).splitlines())
    text += behind("(RayTrainWorker pid=72) ", "Fatal Python error: Aborted\n")
    assert culprits(tmp_path, {"driver.log": text}) == ("process.native_crash", (2,), ("10.8.0.4",))
