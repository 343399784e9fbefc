"""What schedulers, clouds, stores and monitors say of a job that they ended, refused or slowed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, first, judged, steps, traceback

CLOSED = (
    "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, "
    "remote process exited or there was a network error, NCCL version 2.20.5"
)
TERMINATED = (
    f"{clock(61)} WARNING torch/distributed/elastic/agent/server/api.py:741] "
    "Received Signals.SIGTERM death signal, shutting down workers\n"
)
BROKEN_PIPELINE = (
    traceback(
        "RuntimeError: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error Message'."
    )
    + "\n- Dataset Pipeline Error Message:\n"
)
EVENTS = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n"
BOOTED = "".join(f"Jan 31 07:59:0{second} cn-4 systemd[1]: Started unit {second}.\n" for second in range(9))
HOSTS = "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV\n"


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def refused(status: int, code: str) -> str:
    return traceback(
        f"oci.exceptions.ServiceError: {{'target_service': 'object_storage', 'status': {status}, "
        f"'code': '{code}', 'opc-request-id': '4f', 'message': 'told to go', 'operation_name': 'get_object'}}"
    )


def exported(*records: tuple[float, str, str | Mapping[str, object]]) -> str:
    """Records of Google Cloud's logging: seconds, the instance, and a message or an event's payload."""
    return "".join(
        json.dumps(
            {
                "timestamp": f"2026-01-31T08:{seconds // 60:02.0f}:{seconds % 60:02.0f}Z",
                "resource": {"type": "gce_instance", "labels": {"instance_name": instance}},
                **({"jsonPayload": {"message": told}} if isinstance(told, str) else {"protoPayload": told}),
            }
        )
        + "\n"
        for seconds, instance, told in records
    )


def host_error(instance: str) -> dict[str, object]:
    return {
        "methodName": "compute.instances.hostError",
        "resourceName": f"projects/p/zones/z/instances/{instance}",
        "status": {"message": "Instance terminated by Compute Engine."},
    }


MACHINES = ("vm-1", "vm-2", "vm-3")
WELL = [(float(at), vm, f"step {at} loss 2.5") for at in range(1, 40) for vm in MACHINES]

CASES: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "Oracle's store does not know the key": (
        {"train.log": steps(9) + refused(401, "NotAuthenticated")}, "auth.denied", ()),
    "Oracle's store forbids it": ({"train.log": steps(9) + refused(403, "NotAuthorized")}, "auth.denied", ()),
    "Oracle's store is busy": (
        {"train.log": steps(9) + refused(503, "ServiceUnavailable")}, "storage.object_store", ()),
    "a project takes its GPUs back": (
        {"train.log": steps(30) + TERMINATED,
         "events.txt": EVENTS + "9s  Warning  Preempted  podgroup/pg-7  "
         "Workload is over quota in project speech; preempted by job text/sft\n"},
        "scheduler.preempted", ()),
    "a queue reclaims": (
        {"train.log": steps(30) + TERMINATED,
         "events.txt": EVENTS + "9s  Normal  Evict  podgroup/pg-7  reclaim\n"},
        "scheduler.preempted", ()),
    "a home directory is over its quota": (
        {"train.log": steps(30) + "OSError: write failed: /home/ml is over quota\n"}, "host.disk_full", ()),
    "the machine under an instance broke": (
        {"export.jsonl": exported(*WELL, (50.0, "vm-2", host_error("vm-2")),
                                  (55.0, "vm-1", CLOSED.format(rank=0)),
                                  (55.0, "vm-3", CLOSED.format(rank=2)))},
        "host.node_lost", ("vm-2",)),
    "the machine under an instance broke, as operations are listed": (
        {"train.log": steps(30) + CLOSED.format(rank=0) + "\n",
         "operations.txt": "systemevent-1  compute.instances.hostError  vm-9  DONE  2026-01-31T08:01:02Z\n"},
        "host.node_lost", ("vm-9",)),
    "LSF lost a host": (
        {"out.log": steps(30) + "jsrun: ERROR: lost connection with cn-3\nExited with exit code 255.\n",
         "bhosts.txt": HOSTS + "cn-2   ok   -   42   0   0   0   0   0\n"
         "cn-3   unavail   -   42   42   42   0   0   0\n"},
        "host.node_lost", ("cn-3",)),
    "LSF's history tells of a host": (
        {"out.log": steps(30) + "Exited with exit code 255.\n",
         "bhist.txt": "Sat Jan 31 08:01:01: Execution host cn-5: "
         "Unknown; unable to reach the execution host;\n"},
        "host.node_lost", ("cn-5",)),
    "MindSpore's reader met a broken file": (
        {"worker_1.log": steps(30) + BROKEN_PIPELINE +
         "[ERROR] Invalid file, failed to read image: /data/stl/part.bin, size:27648\n"},
        "data.corrupt", ()),
    "a mindrecord file is cut short": (
        {"worker_1.log": steps(30) + BROKEN_PIPELINE +
         "[ERROR] mindrecord file /data/wiki.mindrecord2 is truncated\n"},
        "data.corrupt", ()),
    "the monitor counts the seconds of heat": (
        {"train.log": steps(30),
         "journal.log": BOOTED + "Jan 31 08:00:20 cn-4 nv-hostengine[17]: There were thermal "
         "violations totaling 31.5 seconds for GPU 2 Verify that the cooling is functional\n"},
        "gpu.thermal_power", ("cn-4",)),
    "reasons behind a colon": (
        {"train.log": steps(30),
         "journal.log": BOOTED + "Jan 31 08:00:20 cn-4 check[17]: GPU 2 temp 94C clocks_event_reasons: "
         "HW Thermal Slowdown Active, SW Thermal Slowdown Active\n"},
        "gpu.thermal_power", ("cn-4",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_who_runs_the_machines_tells_why(tmp_path: Path, name: str) -> None:
    files, failure_type, hosts = CASES[name]
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == (failure_type, hosts)


@pytest.mark.parametrize(
    "restored",
    [
        "restoring from this run's directory step 30",
        "I0131 ckpt.py:88] Restored the state from gs://b/ckpt_30",
    ],
)
def test_a_run_that_was_taken_up_after_preemption_and_ended_is_well(tmp_path: Path, restored: str) -> None:
    verdict = judged(
        tmp_path,
        {
            "train.log": steps(30)
            + f"{clock(60)} TPU maintenance event: worker preempted, exiting\n{restored}\n"
            + steps(30, first=31, at=200)
            + "    Reason:  AllJobsCompleted\n"
        },
    )
    assert verdict.verdict.failure_type == "none.completed"
    assert "AllJobsCompleted" in first(verdict)[1]


def test_most_of_each_batch_is_the_cost_of_its_data(tmp_path: Path) -> None:
    text = "".join(
        f"{clock(20.0 * number)} INFO Epoch: [1] [{20 * number:4d}/900] loss: 1.3 batch_cost: {cost:.4f} "
        f"data_cost: {0.85 * cost:.4f} ips: 1.8 images/s\n"
        for number, cost in enumerate([2.31, 2.2, 2.4, 2.29, 2.33, 2.3, 2.28, 2.41])
    )
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "slow.data"


GIVEN_UP = (
    "google.api_core.exceptions.ServiceUnavailable: 503 GET https://storage.googleapis.com/b/x/o/7: Busy"
)


@pytest.mark.parametrize(
    "heading", ["", "Exception in device=TPU:5: 503 GET https://storage.googleapis.com/b/x/o/7: Busy"]
)
def test_what_was_given_up_is_cited_before_what_was_tried_again(tmp_path: Path, heading: str) -> None:
    retries = "".join(
        f"{clock(60 + attempt)} WARNING Retrying {GIVEN_UP.replace('/7', f'/{attempt}')}: try {attempt}\n"
        for attempt in range(1, 4)
    )
    text = steps(30) + retries + (f"{heading}\n" if heading else "") + traceback(GIVEN_UP)
    verdict = judged(tmp_path, {"train.log": text}).verdict
    assert verdict.failure_type == "storage.object_store"
    cited = [each.text for each in verdict.evidence]
    assert cited[0] == GIVEN_UP
    assert not heading or cited[1] == heading


def test_a_launchers_report_below_a_label_is_what_is_left_of_a_process(tmp_path: Path) -> None:
    told = (
        "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing "
        "the job to be terminated. The first process to do so was:",
        "Process name: 3",
        "Exit code: 1",
    )
    text = "".join(
        f"<info>    [2026-01-31 08:00:{at:02d}] 0a1b2c3d || INFO: harness: step {at} done\n"
        for at in range(30)
    ) + "".join(f"<>        [2026-01-31 08:00:31] 0a1b2c3d || {each}\n" for each in told)
    verdict = judged(tmp_path, {"trial.log": text}).verdict
    assert verdict.failure_type == "unknown"
    assert any(each.text.endswith("|| Exit code: 1") for each in verdict.evidence)
