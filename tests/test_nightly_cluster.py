"""A night on a real Dask cluster: the same verdicts as here, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_jobs import write_job

from logtriage.fleet.cluster import ClusterFault, triaged_on
from logtriage.fleet.supervision import Limits, Outcome, Task, Worker
from logtriage.fleet.workers import triaged_here
from logtriage.mining.survey import PARALLEL_BYTES

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
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
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


def test_one_large_job_is_read_by_several_workers(tmp_path: Path) -> None:
    """Three parts; the line that tells all ends the last."""
    line = b"2026-03-02 01:%02d:00 INFO step %d " + b"." * 200 + b"\n"
    block = b"".join(line % (number // 90, number) for number in range(4_500))
    for rank in range(3):
        with (tmp_path / f"rank{rank}.log").open("wb") as log:
            for _ in range(PARALLEL_BYTES // 3 // len(block) + 1):
                log.write(block)
            if rank == 2:
                log.write(b'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n')
                log.write(b"    ids = batch['ids']\nKeyError: 'ids'\n")
    task = Task("large", (str(tmp_path),))
    worker = Worker()
    try:
        here = document(worker.triage(task, LIMITS))
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
            address = cluster.scheduler_address
            there = document(worker.triage(replace(task, scheduler=address), LIMITS))
            with distributed.Client(cluster) as client:
                read = [str(each) for done in client.run(_tasks_done).values() for each in done]
    finally:
        worker.close()
    assert there == here
    assert here["verdict"]["failure_type"] == "code.key"
    assert len(read) == 3 and all("scan_there" in each for each in read)


def _tasks_done(dask_worker: Any) -> list[Any]:
    """The tasks that a worker of the cluster has executed."""
    log = dask_worker.state.log
    return list({entry[0] for entry in log if "memory" in map(str, entry)})
