"""The pass in several processes: each reads parts of files and sends their summaries back."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from logtriage.forks import bound_to
from logtriage.mining.joined import REPORT_SECONDS, Joined, Told
from logtriage.mining.parts import Part, Scanned, reuse_memory, scan_part
from logtriage.mining.scanner import Scanner
from logtriage.model import Source
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.database import databases
from logtriage.rulebank.matcher import Matcher

LAST_BLOCK_SECONDS = 5.0  # how long a process that was told to stop may take to end its block


def in_processes(
    count: int,
    root: Path,
    sources: Sequence[Source],
    parts: Sequence[Sequence[Part]],
    rules: Sequence[Path],
    told: Told,
    enough: threading.Event,
    joined: Joined,
) -> None:
    """Join what the processes find. Whatever ends this call early ends the processes as well."""
    others = set(multiprocessing.active_children())
    other_threads = set(threading.enumerate())
    done: Synchronized[int] = multiprocessing.Value("Q", 0)
    stop: Synchronized[int] = multiprocessing.Value("b", 0)
    pool = ProcessPoolExecutor(count, initializer=_start, initargs=(tuple(rules), os.getpid(), done, stop))
    # The largest first, so that no core waits for one at the end.
    order = sorted(parts, key=lambda each: -sources[each[0].source].size)
    is_done = False
    try:
        futures: dict[Future[Scanned], Part] = {
            pool.submit(_scan_here, root, sources[part.source], part, len(sources)): part
            for source_parts in order
            for part in source_parts
        }
        waiting = set(futures)
        patience = LAST_BLOCK_SECONDS / REPORT_SECONDS
        while waiting and patience > 0:
            ended, waiting = wait(waiting, REPORT_SECONDS, FIRST_COMPLETED)
            for future in ended:
                if not future.cancelled():
                    part = futures.pop(future)  # which lets go of the result as well
                    joined.add(part, future.result())
                    told.file = sources[part.source].file
            told.done = done.value
            told.show()
            if enough.is_set():
                patience -= 1
                stop.value = 1
                for future in waiting:
                    future.cancel()
        is_done = not waiting
    finally:
        pool.shutdown(wait=is_done, cancel_futures=True)
        if not is_done:
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            # The pool's own threads see that their processes are gone. Python's end would wake them through
            # a pipe that they close at that moment, and print the error that this gives.
            for thread in set(threading.enumerate()) - other_threads:
                thread.join(LAST_BLOCK_SECONDS)


class _Process:
    """What a process of the pass works with."""

    scanner: Scanner
    done: Synchronized[int]
    stop: Synchronized[int]


def _start(rules: Sequence[Path], parent: int, done: Synchronized[int], stop: Synchronized[int]) -> None:
    bound_to(parent)
    reuse_memory()
    bank = load_bank(rules)
    _Process.scanner = Scanner(Matcher(bank), databases(bank), in_bulk=True)
    _Process.done, _Process.stop = done, stop


def _scan_here(root: Path, source: Source, part: Part, files: int) -> Scanned:
    def told(count: int) -> None:
        with _Process.done.get_lock():
            _Process.done.value += count

    return scan_part(_Process.scanner, root, source, part, files, told, lambda: bool(_Process.stop.value))
