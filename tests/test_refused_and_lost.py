"""What kernels, compilers, fabrics and daemons refuse or lose, where other words in the logs mislead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, first, judged, reading, steps

from logtriage.diagnose.launches import launched_on
from logtriage.localize.exits import Exit
from logtriage.model import Line


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def tasks(host: str, ranks: range, end: str) -> str:
    return "".join(f"srun: error: {host}: task {rank}: {end}\n" for rank in ranks)


NO_NAMESPACE = (
    "slurmstepd: error: pyxis: container start failed with error code: 1\n"
    "slurmstepd: error: pyxis: printing enroot log file:\n"
    "slurmstepd: error: pyxis:     bwrap: unshare user ns: No space left on device\n"
    "slurmstepd: error: pyxis: couldn't start container\n"
    + tasks("c7", range(8, 12), "Exited with exit code 1")
    + tasks("c5", range(4), "Terminated")
    + tasks("c6", range(4, 8), "Terminated")
)


def test_a_namespace_that_the_kernel_refuses_is_no_full_disk(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"slurm-77.out": NO_NAMESPACE}).verdict
    assert verdict.failure_type == "scheduler.launch"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((8, 9, 10, 11), ("c7",))


def ended(host: str | None, code: int) -> Exit:
    return Exit(Line("launcher.log", 1, 0, "", ""), code, host=host)


@pytest.mark.parametrize(
    ("exits", "host"),
    [
        ([("a", 1), ("a", 1), ("b", -15)], "a"),
        ([("a", 1), ("b", 1), ("c", -15)], None),
        ([("a", 1), ("a", -15)], None),
        ([("a", 1), (None, -15)], None),
        ([("a", 1)], None),
    ],
)
def test_tasks_of_one_host_alone_left_by_themselves(
    exits: list[tuple[str | None, int]], host: str | None
) -> None:
    assert launched_on((), {"a", "b", "c"}, [ended(*each) for each in exits]) == host


COMPILER = (
    f"{clock(0)} INFO ||NEURON_CACHE||: Compile cache path: /cache\n"
    f"{clock(9)} ERROR ||NEURON_CC_WRAPPER||: Got a cached failed neff at /cache/MODULE_7+e1/model.neff. "
    "Will skip compilation, please set --retry_failed_compilation for recompilation:\n"
    f"{clock(10)} F debug_macros.h:20] Non-OK-status: status.status() status: INTERNAL: RunNeuronCCImpl: "
    "error condition error != 0: <class 'subprocess.CalledProcessError'>: "
    "Command '' died with <Signals.SIGHUP: 1>.\n"
    "\nAborted (core dumped)\n"
)
FABRIC = "".join(
    f"{rank}: \n{rank}: Libfabric EFA provider has encountered an internal error:\n{rank}: \n"
    f"{rank}: Libfabric error: (-12) Cannot allocate memory\n"
    f"{rank}: EFA internal error: (4112) Failure to post internal receive buffers\n{rank}: \n"
    f"{rank}: Your application will now abort().\n"
    for rank in range(4)
) + ("srun: error: c5: tasks 0-3: Aborted (core dumped)\n")
HEARTBEATS = "".join(
    f"{clock(120 + rank)} node{rank} PollForError returned error: UNAVAILABLE: The following tasks are "
    "unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:9. The tasks have crashed.\n"
    for rank in range(3)
)
KILLED = steps(20) + f"{clock(60)} ERROR agent: worker 9 killed: memory cgroup out of memory (exit 137)\n"

ADDRESS = "".join(
    f"cn-{rank // 2}:7{rank}:90 [{rank % 2}] rdma.c:5012 NCCL WARN NET/OFI Unable to insert remote address "
    f"into address vector for device 0. RC: -22\n[rank{rank}]: torch.distributed.DistBackendError: NCCL "
    "error in: NCCLUtils.hpp:317, internal error, NCCL version 2.21.5\n"
    for rank in range(4)
)
NOT_FINITE = steps(30) + "".join(
    f"[rank {rank}] grad norm is not a finite value in update 31, stopping here before the update\n"
    for rank in range(4)
)
OTHER_CLASSES = (
    "INFO: opening base.ckpt\nERROR: the checkpoint was made for 31 classes, but this config names 28.\n"
    "INFO: left after 3 s\n"
)
EMPTY = steps(30) + (
    f"{clock(61)} WARNING reader: /data/set7/a0412.png is 0 bytes, cannot be shown to the model\n"
    f"{clock(62)} INFO leaving\n{clock(63)} ERROR driver: worker 1 came out of the loop at step 31\n"
)
IMMINENT = steps(30) + (
    f"{clock(61)} EC2 Metadata Service says termination is imminent\n"
    f"{clock(62)} [error] cannot open best.npz\n"
)


@pytest.mark.parametrize(
    ("text", "failure_type", "says"),
    [
        pytest.param(COMPILER, "code.compile", "cached failed neff", id="failure-out-of-a-cache"),
        pytest.param(FABRIC, "host.resource_limit", "internal receive buffers", id="locked-memory"),
        pytest.param(
            KILLED + HEARTBEATS, "host.out_of_memory", "killed: memory cgroup", id="killed-container"
        ),
        pytest.param(ADDRESS, "collective.init", "address vector", id="address-of-a-peer"),
        pytest.param(NOT_FINITE, "numerics.nan", "not a finite", id="gradient"),
        pytest.param(OTHER_CLASSES, "checkpoint.mismatch", "31 classes", id="other-number-of-classes"),
        pytest.param(EMPTY, "data.corrupt", "0 bytes", id="empty-file"),
        pytest.param(IMMINENT, "scheduler.preempted", "imminent", id="spot-machine"),
    ],
)
def test_what_lies_behind_the_louder_words(tmp_path: Path, text: str, failure_type: str, says: str) -> None:
    verdict = judged(tmp_path, {"job.log": text})
    assert verdict.verdict.failure_type == failure_type
    assert says in first(verdict)[1]


def test_a_daemon_of_pals_that_dies_with_its_node(tmp_path: Path) -> None:
    text = steps(30) + (
        "nid0412.hsn.lab.org: shepherd died from signal 9\n"
        + "".join(f"nid0411.hsn.lab.org: rank {rank} died from signal 15\n" for rank in range(4))
    )
    verdict = judged(tmp_path, {"job.o77": text}).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("host.node_lost", ("nid0412",))


def test_an_empty_file_that_was_stepped_over_ended_nothing(tmp_path: Path) -> None:
    text = EMPTY.splitlines(keepends=True)[:31]
    verdict = judged(tmp_path, {"job.log": "".join(text) + steps(30, first=31, at=64)}).verdict
    assert verdict.failure_type == "none.running"


def test_syslog_without_a_colon_names_its_machine() -> None:
    text = "".join(
        f"Jan 31 08:00:{n:02d}Z pool-b-g4-7 agent 2026/01/31 08:00:{n:02d} polled {n}\n" for n in range(20)
    )
    lines = reading("journal.log", text + "Jan 31 08:00:21Z pool-b-g4-7 logind Power key pressed.\n").lines
    assert {line.host for line in lines} == {"pool-b-g4-7"}
    assert lines[-1].message == "logind Power key pressed."
    words = "".join(f"Jan 31 08:00:{n:02d} shard-{n}.bin read in {n} s\n" for n in range(20))
    assert {line.host for line in reading("train.log", words).lines} == {None}


def test_the_machine_that_its_own_journal_calls_taken_back(tmp_path: Path) -> None:
    journal = "".join(
        f"Jan 31 08:00:{n:02d}Z pool-b-g4-7 agent 2026/01/31 08:00:{n:02d} polled {n}\n" for n in range(40)
    )
    journal += "Jan 31 08:01:02Z pool-b-g4-7 agent EC2 Metadata Service says termination is imminent\n"
    files = {"journal.log": journal, "train.log": steps(30) + f"{clock(63)} [error] cannot open best.npz\n"}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("scheduler.preempted", ("pool-b-g4-7",))


def test_weights_of_the_same_number_are_no_mismatch(tmp_path: Path) -> None:
    text = OTHER_CLASSES.replace("names 28", "names 31")
    assert judged(tmp_path, {"job.log": text}).verdict.failure_type == "unknown"


def test_a_service_of_its_own_that_an_exception_ended_is_not_there(tmp_path: Path) -> None:
    server = (
        f"{clock(1)} INFO judge: loading reward model\n"
        "Traceback (most recent call last):\n"
        '  File "/app/judge.py", line 60, in <module>\n'
        "    serve(port=9010)\n"
        '  File "/app/judge.py", line 31, in serve\n'
        "    scorer = Scorer(cfg.head)\n"
        "AttributeError: 'NoneType' object has no attribute 'head'\n"
    )
    asker = (
        f"{clock(0)} INFO ppo: waiting for the judge\n"
        f"{clock(120)} ERROR ppo: no answer\n"
        "Traceback (most recent call last):\n"
        '  File "/app/ppo.py", line 12, in score\n'
        "    reply = client.post(url)\n"
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='{host}', port=9010): Max retries"
        " exceeded with url: /score (Caused by NewConnectionError('<urllib3 object at 0x7f>: Failed to"
        " establish a new connection: [Errno 111] Connection refused'))\n"
    )
    here = {"judge.log": server, "ppo.log": asker.replace("{host}", "localhost")}
    assert judged(tmp_path / "here", here).verdict.failure_type == "code.attribute"
    outside = {"judge.log": server, "ppo.log": asker.replace("{host}", "rewards.example.org")}
    assert judged(tmp_path / "outside", outside).verdict.failure_type == "network.connection"


MET = (
    "Traceback (most recent call last):\n"
    '  File "/opt/torch/elastic/rendezvous/c10d_rendezvous_backend.py", line 146, in _call_store\n'
    "    return getattr(self._store, store_op)(*args, **kwargs)\n"
    "torch.distributed.DistNetworkError: Connection reset by peer\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/lib/torch/distributed/elastic/agent/server/api.py", line 680, in _rendezvous\n'
    "    rdzv_info = spec.rdzv_handler.next_rendezvous()\n"
    '  File "/opt/lib/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py", line 1151, in {}\n'
    "    self._op_executor.run(join_op, deadline)\n"
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store "
    "has failed. See inner exception for details.\n"
)


@pytest.mark.parametrize(
    ("before", "function", "failure_type"),
    [
        ("", "next_rendezvous", "network.rendezvous"),
        ("", "num_nodes_waiting", "collective.remote_error"),  # they had met
        (steps(20), "next_rendezvous", "collective.remote_error"),  # they meet anew, of which one is gone
    ],
)
def test_whose_store_is_lost_where_all_meet_has_never_met(
    tmp_path: Path, before: str, function: str, failure_type: str
) -> None:
    files = {"agent-1.log": before + MET.format(function), "agent-0.log": "starting\n" + before}
    assert judged(tmp_path, files).verdict.failure_type == failure_type
