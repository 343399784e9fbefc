"""A Dask cluster as the place where a night's work is done: the same tasks and the same limits as here.

Each worker of the cluster keeps a process of its own for the jobs (see `supervision`), so that a job that
crashes ends that process alone. When a machine or a Dask worker dies, Dask gives its tasks to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from logtriage.fleet.supervision import FAULTY, POISONED, Limits, Outcome, Task, triage_here

CONNECT_SECONDS = 30


class ClusterFault(Exception):
    """The cluster cannot be used; the message says why."""


@contextmanager
def triaged_on(
    address: str, limits: Limits
) -> Iterator[Callable[[Sequence[Task]], Iterator[tuple[Task, Outcome]]]]:
    """What triages tasks on the cluster whose scheduler has this address, or wrote this scheduler file.

    The workers must see the logs under the same paths, and have this version installed. Raises ClusterFault.
    """
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise ClusterFault("--engine needs Dask: pip install 'logtriage[fleet]'") from None
    where: dict[str, Any] = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        client = dask.Client(**where, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as fault:
        raise ClusterFault(f"no Dask scheduler answers at {address}: {fault}") from None
    with client:
        yield lambda tasks: _triaged(dask, client, tasks, limits)


def _triaged(
    dask: Any, client: Any, tasks: Sequence[Task], limits: Limits
) -> Iterator[tuple[Task, Outcome]]:
    # The largest first, so that nobody waits for one at the end.
    order = sorted(tasks, key=lambda task: -task.size)
    waiting = {client.submit(triage_here, task, limits, pure=False): task for task in order}
    for future in dask.as_completed(waiting):
        task = waiting.pop(future)
        fault = future.exception()
        if fault is None:
            yield task, future.result()
        elif isinstance(fault, dask.KilledWorker):
            yield task, Outcome(POISONED, reason="the cluster's workers that had it died again and again")
        else:
            yield task, Outcome(FAULTY, reason=f"{type(fault).__name__}: {fault}")
        future.release()
