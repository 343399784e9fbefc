"""A Dask cluster as the place where a night's work is done: the same tasks and the same limits as here.

Each worker of the cluster keeps a process of its own for the jobs (see `supervision`), so that a job that
crashes ends that process alone. When a machine or a Dask worker dies, Dask gives its tasks to another. Of a
huge job the parts of its files are the tasks, and what is found in them is joined here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from logtriage.fleet.supervision import FAULTY, HUGE_BYTES, POISONED, Limits, Outcome, Task, triage_here
from logtriage.mining.parts import Part, Scanned, scan_part
from logtriage.mining.scanner import Scanner
from logtriage.mining.survey import Elsewhere
from logtriage.model import Source
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher

CONNECT_SECONDS = 30


class ClusterFault(Exception):
    """The cluster cannot be used; the message says why."""


@contextmanager
def _connected(address: str) -> Iterator[tuple[Any, Any]]:
    """The module `distributed`, and a client of the scheduler at an address or of a scheduler file."""
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise ClusterFault("--engine needs Dask: pip install 'logtriage[fleet]'") from None
    where = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        client = dask.Client(**where, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as fault:
        raise ClusterFault(f"no Dask scheduler answers at {address}: {fault}") from None
    with client:
        yield dask, client


# --- jobs ----------------------------------------------------------------------------------------------


@contextmanager
def triaged_on(
    address: str, limits: Limits
) -> Iterator[Callable[[Sequence[Task]], Iterator[tuple[Task, Outcome]]]]:
    """What triages tasks on the cluster whose scheduler has this address, or wrote this scheduler file.

    The workers must see the logs under the same paths, and have this version installed. Raises ClusterFault.
    """
    with _connected(address) as (dask, client):

        def triaged(tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
            for task in tasks:
                if task.size >= HUGE_BYTES:
                    yield task, triage_here(replace(task, scheduler=address), limits)
            yield from _triaged(dask, client, [task for task in tasks if task.size < HUGE_BYTES], limits)

        yield triaged


def _triaged(dask: Any, client: Any, tasks: Sequence[Task], limits: Limits) -> Iterator[tuple[Task, Outcome]]:
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


# --- parts of a huge job -------------------------------------------------------------------------------


@contextmanager
def read_on(address: str) -> Iterator[Elsewhere]:
    """What reads the parts of a job's files on the cluster. Raises ClusterFault."""
    with _connected(address) as (dask, client):

        def scanned(
            root: Path, sources: Sequence[Source], parts: Sequence[Part], rules: Sequence[Path]
        ) -> Iterator[tuple[Part, Scanned]]:
            waiting = {
                client.submit(
                    _scan_there, root, sources[part.source], part, len(sources), tuple(rules), pure=False
                ): part
                for part in parts
            }
            for future in dask.as_completed(waiting):
                yield waiting.pop(future), future.result()
                future.release()

        yield scanned


def _scan_there(root: Path, source: Source, part: Part, files: int, rules: tuple[Path, ...]) -> Scanned:
    return scan_part(_scanner(rules), root, source, part, files, lambda count: None, lambda: False)


@lru_cache(maxsize=1)
def _scanner(rules: tuple[Path, ...]) -> Scanner:
    """What a worker reads parts with; kept, since a job has many."""
    matcher = Matcher(load_bank(rules))
    return Scanner(matcher, matcher.databases, in_bulk=True)
