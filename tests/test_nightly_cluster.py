"""A night on a real Dask cluster: the same verdicts as here, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fleet_jobs import write_job

from logtriage.fleet.cluster import ClusterFault, triaged_on
from logtriage.fleet.supervision import Limits, Outcome, Task
from logtriage.fleet.workers import triaged_here

distributed = pytest.importorskip("distributed")

LIMITS = Limits(offline=True)


def document(outcome: Outcome) -> dict[str, Any]:
    """An outcome without timings, which alone may differ."""
    assert outcome.verdict is not None, outcome.reason
    return {**outcome.verdict, "timing": None}


def test_a_cluster_whose_worker_dies_gives_the_same_verdicts(tmp_path: Path) -> None:
    tasks = []
    for number, fault in enumerate(("ecc", "key", "none", "ecc", "quiet", "key", "none", "ecc")):
        folder = write_job(tmp_path, f"job-{number}", fault)
        tasks.append(Task(folder.name, (str(folder),), number))
    here = {task.key: document(outcome) for task, outcome in triaged_here(tasks, LIMITS, 2)}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        triaged_on(cluster.scheduler_address, LIMITS) as triage,
    ):
        there = {}
        for task, outcome in triage(tasks):
            if not there:
                victim = next(iter(cluster.workers.values()))
                os.kill(victim.pid, signal.SIGKILL)
            there[task.key] = document(outcome)
    assert there == here


def test_a_scheduler_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logtriage.fleet.cluster.CONNECT_SECONDS", 1)
    nobody = triaged_on("tcp://127.0.0.1:9", LIMITS)
    with pytest.raises(ClusterFault, match="no Dask scheduler answers"), nobody:
        pass
