"""How fast many jobs are triaged by one and by two workers, here and on an engine for several machines.

    python benchmarks/fleet.py FOLDER --engine local|dask|ray [--jobs N] [--rounds N]

FOLDER holds a folder for each job (`fleet_corpus.py` makes them). Prints one JSON object a run: seconds and
CPU seconds until the first trivial task was answered (start-up), memory of the idle engine, seconds and CPU
seconds for the jobs. One and two workers take turns, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logtriage.fleet.listing import jobs_below
from logtriage.fleet.supervision import Limits, Outcome, Task, triage_here
from logtriage.fleet.workers import triaged_here

LIMITS = Limits(offline=True)
Run = Callable[[list[Task]], list[Outcome]]


@contextmanager
def local(count: int) -> Iterator[Run]:
    yield lambda tasks: [outcome for _, outcome in triaged_here(tasks, LIMITS, count)]


@contextmanager
def dask(count: int) -> Iterator[Run]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.submit(_nothing).result()
        yield lambda tasks: client.gather([client.submit(triage_here, t, LIMITS, pure=False) for t in tasks])


@contextmanager
def ray(count: int) -> Iterator[Run]:
    import ray as engine

    engine.init(num_cpus=count, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        engine.get(engine.remote(_nothing).remote())
        remote = engine.remote(triage_here)
        yield lambda tasks: engine.get([remote.remote(task, LIMITS) for task in tasks])
    finally:
        engine.shutdown()


def _nothing() -> None:
    """The first task of an engine."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=("local", "dask", "ray"), default="local")
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    engine = {"local": local, "dask": dask, "ray": ray}[asked.engine]
    jobs = jobs_below(asked.folder).jobs[: asked.jobs]
    tasks = [Task(job.id, job.paths) for job in jobs]
    for _ in range(asked.rounds):
        for count in (1, 2):
            told = {"engine": asked.engine, "workers": count, **_measured(engine, count, tasks)}
            print(json.dumps(told), flush=True)


def _measured(engine: Callable[[int], Any], count: int, tasks: list[Task]) -> dict[str, float]:
    begun, before = time.perf_counter(), _cpu()
    with engine(count) as run:
        started, idle = time.perf_counter(), _cpu()
        memory = _memory()
        run(tasks[:1] * 2 * count)  # workers of an engine keep their processes, with the rules loaded
        ready, spent = time.perf_counter(), _cpu()
        outcomes = run(tasks)
        seconds, used = time.perf_counter() - ready, _cpu() - spent
    assert all(outcome.status == "triaged" for outcome in outcomes)
    return {
        "start_seconds": round(started - begun, 2),
        "start_cpu_seconds": round(idle - before, 2),
        "idle_mib": round(memory / (1 << 20), 1),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
    }


def _cpu() -> float:
    """CPU seconds of this process and of everything that it has started, ended or not."""
    return sum(os.times()[:4]) + sum(map(_ticks, _descendants())) / os.sysconf("SC_CLK_TCK")


def _memory() -> int:
    """Resident bytes of everything that this process has started."""
    pages = 0
    for each in _descendants():
        try:
            pages += int(Path(f"/proc/{each}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def _ticks(process: int) -> int:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found, mine = [], {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in mine} - set(found):
        found += sorted(more)
        mine = more
    return found


if __name__ == "__main__":
    main()
