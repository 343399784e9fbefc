"""The pass over all files of a job: one summary a file, on several cores when there is enough to do."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from logtriage.mining.parts import Part, Scanned, parts_of, scan_part
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import Summary
from logtriage.model import Source, Unreadable
from logtriage.rulebank.bank import Bank, load_bank
from logtriage.rulebank.database import databases
from logtriage.rulebank.matcher import Matcher

PARALLEL_BYTES = 48 << 20  # below this, starting processes costs more than it saves
DATABASE_BYTES = 24 << 20  # below this, loading the pattern database, or compiling it, does
JOB_KEYS_BYTES = 64 << 20  # what the distinct shapes of all files together may take, but for each file …
LEAST_KEYS_BYTES = 256 << 10  # … at least this: some hundred kinds of lines
REPORT_SECONDS = 0.2
LAST_BLOCK_SECONDS = 5.0  # how long a process that was told to stop may take to end its block

# What the caller is told while the pass runs: file, stored bytes read, stored bytes in all.
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Survey:
    """Summaries in the order of the sources, and the files whose end could not be read.

    `unread` are the stored bytes that were left out, in a survey that was told to stop.
    """

    summaries: tuple[Summary, ...]
    unreadable: tuple[Unreadable, ...]
    unread: int = 0


def survey(
    root: Path,
    sources: Sequence[Source],
    matcher: Matcher,
    *,
    workers: int | None = None,
    rules: Sequence[Path] = (),
    progress: Report | None = None,
    enough: threading.Event | None = None,
) -> Survey:
    """Scan every source. `rules` are the extra rule files that `matcher` was built with.

    Once `enough` is set, the reading ends and what is known so far is the result. Raises KeyboardInterrupt
    if that is nothing.
    """
    total = sum(source.size for source in sources)
    parts = parts_of(root, sources)
    count = min(workers or os.cpu_count() or 1, sum(map(len, parts)))
    told = _Told(total, progress)
    enough = enough or threading.Event()
    in_processes = count > 1 and total >= PARALLEL_BYTES
    compiled = databases(matcher.bank) if total >= DATABASE_BYTES and not in_processes else ()
    joined = _Joined(Scanner(matcher, compiled), sources, parts)
    if in_processes:
        _in_processes(count, root, sources, parts, rules, told, enough, joined)
    else:
        for part in itertools.chain.from_iterable(parts):
            if enough.is_set():
                break
            source = sources[part.source]
            told.file = source.file
            joined.add(part, scan_part(joined.scanner, root, source, part, told, enough.is_set))
    unread = max(0, total - told.done) if enough.is_set() else 0
    found = joined.survey(unread)
    if unread and not any(each.bytes for each in found.summaries):
        raise KeyboardInterrupt
    return found


class _Joined:
    """The parts of each source, joined in order as they come in; what came too early waits."""

    def __init__(self, scanner: Scanner, sources: Sequence[Source], parts: Sequence[Sequence[Part]]) -> None:
        self.scanner = scanner
        self._sources = sources
        self._missing = [list(reversed(source_parts)) for source_parts in parts]
        self._early: dict[Part, Scanned] = {}
        self._cut: set[int] = set()  # sources that were not read to their end
        self._summaries = [Summary() for _ in sources]
        self._faults: list[tuple[int, Unreadable]] = []
        self._keys_bytes = max(LEAST_KEYS_BYTES, JOB_KEYS_BYTES // max(1, len(sources)))

    def add(self, part: Part, scanned: Scanned) -> None:
        missing = self._missing[part.source]
        if part.source in self._cut:
            return  # a place behind a gap has no line number
        self._early[part] = scanned
        while missing and missing[-1] in self._early:
            found = self._early.pop(missing.pop())
            self._summaries[part.source].append(found.summary)
            if found.fault:
                file = self._sources[part.source].file
                self._faults.append((part.source, Unreadable(file, found.fault)))
            if not found.is_whole:
                self._cut.add(part.source)
                return
        if not missing:
            self._finish(part.source)

    def _finish(self, source: int) -> None:
        where = self._sources[source]
        self._summaries[source] = self.scanner.finished(
            self._summaries[source], where.role, one_rank=where.rank is not None, keys_bytes=self._keys_bytes
        )

    def survey(self, unread: int) -> Survey:
        for source, missing in enumerate(self._missing):
            if missing or source in self._cut:
                self._finish(source)
        faults = (fault for _, fault in sorted(self._faults, key=lambda each: each[0]))
        return Survey(tuple(self._summaries), tuple(faults), unread)


class _Told:
    """Counts the bytes read and reports them, now and then."""

    def __init__(self, total: int, report: Report | None) -> None:
        self.file = ""
        self.done = 0
        self._total = total
        self._report = report
        self._next = 0.0

    def __call__(self, count: int) -> None:
        self.done += count
        self.show()

    def show(self) -> None:
        now = time.monotonic()
        if self._report is not None and now >= self._next:
            self._next = now + REPORT_SECONDS
            self._report(self.file, min(self.done, self._total), self._total)


def _in_processes(
    count: int,
    root: Path,
    sources: Sequence[Source],
    parts: Sequence[Sequence[Part]],
    rules: Sequence[Path],
    told: _Told,
    enough: threading.Event,
    joined: _Joined,
) -> None:
    """Join what the processes find. Whatever ends this call early ends the processes as well."""
    databases(load_bank(rules))  # compiled once, here: the processes load what is kept
    others = set(multiprocessing.active_children())
    done: Synchronized[int] = multiprocessing.Value("Q", 0)
    stop: Synchronized[int] = multiprocessing.Value("b", 0)
    pool = ProcessPoolExecutor(count, initializer=_start, initargs=(tuple(rules), os.getpid(), done, stop))
    # The largest first, so that no core waits for one at the end.
    order = sorted(parts, key=lambda each: -sources[each[0].source].size)
    is_done = False
    try:
        futures: dict[Future[Scanned], Part] = {
            pool.submit(_scan_here, root, sources[part.source], part): part
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


class _Process:
    """What a process of the pass works with."""

    scanner: Scanner
    done: Synchronized[int]
    stop: Synchronized[int]


def _start(rules: Sequence[Path], parent: int, done: Synchronized[int], stop: Synchronized[int]) -> None:
    # Ctrl-C reaches every process of a terminal: the first one alone answers it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    bank: Bank = load_bank(rules)
    _Process.scanner = Scanner(Matcher(bank), databases(bank))
    _Process.done, _Process.stop = done, stop


def _end_with(parent: int) -> None:
    """A process whose parent was killed would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _scan_here(root: Path, source: Source, part: Part) -> Scanned:
    def told(count: int) -> None:
        with _Process.done.get_lock():
            _Process.done.value += count

    return scan_part(_Process.scanner, root, source, part, told, lambda: bool(_Process.stop.value))
