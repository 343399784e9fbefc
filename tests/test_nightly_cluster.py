"""A night on a real Dask cluster: the same digest as here, also when a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_jobs import write_job
from test_nightly import night, site, triaged_jobs

from logtriage.fleet.cluster import ClusterFault, triaged_on
from logtriage.fleet.supervision import Limits, Outcome, Task, Worker
from logtriage.mining.survey import PARALLEL_BYTES

distributed = pytest.importorskip("distributed")

LIMITS = Limits(offline=True)


def document(outcome: Outcome) -> dict[str, Any]:
    """An outcome without timings, which alone may differ."""
    assert outcome.verdict is not None, outcome.reason
    return {**outcome.verdict, "timing": None}


def test_a_night_on_a_cluster_whose_worker_dies_gives_the_same_digest(tmp_path: Path) -> None:
    for number, fault in enumerate(("ecc", "key", "none", "ecc", "quiet", "key")):
        write_job(tmp_path / "logs", f"job-{number}", fault)
    here, there = tmp_path / "here", tmp_path / "there"
    assert night(tmp_path / "logs", tmp_path / "data", "--output", here).returncode == 0
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        victim = next(iter(cluster.workers.values()))
        killer = threading.Thread(target=_kill_once_begun, args=(victim.pid, tmp_path / "other"))
        killer.start()
        options = ("--engine", cluster.scheduler_address, "--output", there)
        ran = night(tmp_path / "logs", tmp_path / "other", *options)
        killer.join()
    assert ran.returncode == 0, ran.stderr
    assert "6 jobs were read, 6 are in the digest" in ran.stderr
    assert site(there) == site(here)


def _kill_once_begun(worker: int, data: Path) -> None:
    """Kill a worker of the cluster when the first job of a night is done."""
    deadline = time.monotonic() + 600
    while not triaged_jobs(data) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(worker, signal.SIGKILL)


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
