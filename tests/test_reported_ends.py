"""Where a launcher's report of ends tells the rank or the host of an error that names none."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged


@pytest.mark.parametrize(
    ("ends", "hosts"),
    [
        ("srun: error: cn-7: task 12: Exited with exit code 1\n", ("cn-7",)),
        (
            "srun: error: cn-7: task 12: Exited with exit code 1\n"
            "srun: error: cn-8: task 16: Exited with exit code 1\n",
            (),
        ),
    ],
)
def test_a_launch_failed_on_the_host_whose_tasks_alone_are_reported(
    tmp_path: Path, ends: str, hosts: tuple[str, ...]
) -> None:
    log = (
        "pyxis: importing docker image: registry.example/train:7\n"
        "slurmstepd: error: pyxis: container start failed with error code: 1\n"
        "slurmstepd: error: pyxis: couldn't start container\n"
    )
    body = judged(tmp_path, {"slurm-71.out": log + ends}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("scheduler.launch", hosts)


def test_a_process_that_its_launcher_names_by_local_rank_is_that_rank(tmp_path: Path) -> None:
    log = (
        "2025-May-21 16:08:34.100001 4411:4411 ERROR   NRT:nrt_allocate_neuron_cores               "
        "NeuronCore(s) not available - Requested:1 Available:0\n"
        "RuntimeError: Bad StatusOr access: UNKNOWN: Failed to initialize the Neuron runtime\n"
        "[2025-05-21 16:08:40,118] torch.distributed.elastic.multiprocessing.api: [ERROR] failed "
        "(exitcode: 1) local_rank: 5 (pid: 4411) of binary: /venv/bin/python\n"
    )
    body = judged(tmp_path, {"run.log": log}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("gpu.unavailable", (5,))


def test_the_rank_that_ends_with_a_status_is_the_one_under_a_dead_device(tmp_path: Path) -> None:
    kernel = (
        "[   84.300488] NVRM: GPU1 _kgspIsHeartbeatTimedOut: Heartbeat timed out, diff 6070 timeout 5200\n"
    )
    log = (
        "[2026-07-03 12:02:08] rank 0 device ok\n[2026-07-03 12:02:08] rank 1 opening\n"
        "[2026-07-03 12:02:08] rank 2 device ok\n[2026-07-03 12:02:08] rank 3 device ok\n"
        "RuntimeError: CUDA error: unknown error\n"
        "[2026-07-03 12:03:25] rank 1 exit status 1, stopping the others\n"
    )
    body = judged(tmp_path, {"dmesg.txt": kernel, "run.log": log}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("gpu.firmware", (1,))
