"""Who does a night's work: processes on this machine, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from queue import SimpleQueue

from logtriage.fleet.supervision import HUGE_BYTES, Limits, Outcome, Task, Worker


def triaged_here(tasks: Sequence[Task], limits: Limits, count: int) -> Iterator[tuple[Task, Outcome]]:
    """The outcomes of tasks, from `count` processes on this machine, as they come.

    Huge jobs come first, one after the other, each read by `count` processes. An early end of the iteration
    ends the processes.
    """
    with ExitStack() as ending:
        idle: SimpleQueue[Worker] = SimpleQueue()
        workers = [Worker() for _ in range(count)]
        for worker in workers:
            idle.put(worker)

        def triage(task: Task) -> Outcome:
            worker = idle.get()
            try:
                return worker.triage(task, limits)
            finally:
                idle.put(worker)

        # Undone from the last to the first: nothing more is begun, the processes end, then the threads.
        pool = ending.enter_context(ThreadPoolExecutor(count))
        for worker in workers:
            ending.callback(worker.close)
        ending.callback(pool.shutdown, wait=False, cancel_futures=True)
        for task in tasks:
            if task.size >= HUGE_BYTES:
                yield task, triage(replace(task, processes=count))
        small = [task for task in tasks if task.size < HUGE_BYTES]
        waiting: dict[Future[Outcome], Task] = {pool.submit(triage, task): task for task in small}
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()
