"""The pass over all files of a job: one summary a file, on several cores when there is enough to do."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.streams import StreamFault, pieces
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import Summary
from logtriage.model import Source, SourceRole, Unreadable
from logtriage.rulebank.bank import Bank, load_bank
from logtriage.rulebank.matcher import Matcher

PARALLEL_BYTES = 48 << 20  # below this, starting processes costs more than it saves

# What the caller is told while the pass runs: file, bytes done, bytes in all.
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Survey:
    """Summaries in the order of the sources, and the files whose end could not be read."""

    summaries: tuple[Summary, ...]
    unreadable: tuple[Unreadable, ...]


def survey(
    root: Path,
    sources: Sequence[Source],
    matcher: Matcher,
    *,
    workers: int | None = None,
    rules: Sequence[Path] = (),
    progress: Report | None = None,
) -> Survey:
    """Scan every source. `rules` are the extra rule files that `matcher` was built with."""
    total = sum(source.size for source in sources)
    count = min(workers or os.cpu_count() or 1, len(sources))
    if count < 2 or total < PARALLEL_BYTES:
        scanner = Scanner(matcher)
        results = []
        done = 0
        for source in sources:
            results.append(_scan(scanner, root, source))
            done += source.size
            if progress is not None:
                progress(source.file, done, total)
    else:
        results = _in_processes(count, root, sources, rules, progress)
    faults = tuple(
        Unreadable(source.file, fault) for source, (_, fault) in zip(sources, results, strict=True) if fault
    )
    return Survey(tuple(summary for summary, _ in results), faults)


_Scanned = tuple[Summary, str | None]


def _in_processes(
    count: int, root: Path, sources: Sequence[Source], rules: Sequence[Path], progress: Report | None
) -> list[_Scanned]:
    """What `_scan` finds in each source. Whatever ends this call early ends the processes as well."""
    results: list[_Scanned] = [(Summary(), None)] * len(sources)
    total = sum(source.size for source in sources)
    done = 0
    # The largest files first, so that no core waits for one at the end.
    order = sorted(range(len(sources)), key=lambda index: -sources[index].size)
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, initializer=_start, initargs=(tuple(rules), os.getpid()))
    try:
        futures = [(index, pool.submit(_scan_here, root, sources[index])) for index in order]
        for index, future in futures:
            results[index] = future.result()
            done += sources[index].size
            if progress is not None:
                progress(sources[index].file, done, total)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()
    return results


def _scan(scanner: Scanner, root: Path, source: Source) -> _Scanned:
    """A file's summary and, when its end could not be read, the reason: what was readable counts."""
    whole = Summary()
    # A file that is no log can still hold what a rule with `where` looks for, so roles pass through.
    role: SourceRole = source.role
    try:
        for piece in pieces(root, source):
            whole.append(scanner.scan_piece(piece.data, role, elided=piece.elided))
    except StreamFault as fault:
        return scanner.finished(whole, role), str(fault)
    except OSError as error:
        return scanner.finished(whole, role), error.strerror or str(error)
    return scanner.finished(whole, role), None


_scanner: Scanner | None = None


def _start(rules: Sequence[Path], parent: int) -> None:
    global _scanner
    # Ctrl-C reaches every process of a terminal: the first one alone answers it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    bank: Bank = load_bank(rules)
    _scanner = Scanner(Matcher(bank))


def _end_with(parent: int) -> None:
    """A process whose parent was killed would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _scan_here(root: Path, source: Source) -> _Scanned:
    assert _scanner is not None
    return _scan(_scanner, root, source)
