"""The pass in several processes: copies of this one read parts of files, this one joins what they find."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from logtriage import forks
from logtriage.forks import ASKED_SECONDS, as_done
from logtriage.mining.joined import Joined, Told
from logtriage.mining.parts import Part, Scanned, reuse_memory, scan_part
from logtriage.mining.scanner import Scanner
from logtriage.model import Source
from logtriage.rulebank.bank import load_bank
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
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Join what the processes find, after what is to be done `meanwhile`.

    Whatever ends this call early ends the copies as well."""
    # The largest first, so that no core waits for one at the end.
    order = sorted(parts, key=lambda each: -sources[each[0].source].size)
    all_parts = [part for source_parts in order for part in source_parts]
    context: Any = multiprocessing.get_context(forks.START)
    done: Synchronized[int] = context.Value("Q", 0)
    stop: Synchronized[int] = context.Value("b", 0)
    patience = LAST_BLOCK_SECONDS / ASKED_SECONDS

    def waits_on() -> bool:
        nonlocal patience
        told.done = done.value
        told.show()
        if enough.is_set():
            patience -= 1
            stop.value = 1
        return patience > 0

    work = _Work(root, sources, all_parts, rules, done, stop, joined.scanner)
    # This process reads nothing, so that Ctrl-C is answered whatever a read may wait for.
    for at, scanned in as_done(work, len(all_parts), count, waits_on, is_idle=True, meanwhile=meanwhile):
        if scanned is not None:
            joined.add(all_parts[at], scanned)
            told.file = sources[all_parts[at].source].file
    told.done = done.value


@dataclass(slots=True)
class _Work:
    """Reads a part, by its number; what is not begun when it is to stop is not read."""

    root: Path
    sources: Sequence[Source]
    parts: Sequence[Part]
    rules: Sequence[Path]
    done: Synchronized[int]
    stop: Synchronized[int]
    scanner: Scanner | None  # not sent to where it is not known already

    def __call__(self, at: int) -> Scanned | None:
        if self.stop.value:
            return None
        reuse_memory()
        if self.scanner is None:
            matcher = Matcher(load_bank(self.rules))
            self.scanner = Scanner(matcher, matcher.databases, in_bulk=True)
        part = self.parts[at]
        source, files = self.sources[part.source], len(self.sources)
        return scan_part(
            self.scanner, self.root, source, part, files, self._told, lambda: bool(self.stop.value)
        )

    def _told(self, count: int) -> None:
        with self.done.get_lock():
            self.done.value += count

    def __reduce__(self) -> tuple[type[_Work], tuple[object, ...]]:
        return _Work, (self.root, self.sources, self.parts, self.rules, self.done, self.stop, None)
