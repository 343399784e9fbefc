"""What the parts of all files give together, as they come in: summaries of whole files, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from logtriage.intake.streams import Clippings
from logtriage.mining.parts import Part, Scanned, keys_bytes
from logtriage.mining.scanner import Scanner
from logtriage.mining.summary import Summary
from logtriage.model import Source, Unreadable

REPORT_SECONDS = 0.2

# What the caller is told while the pass runs: file, stored bytes read, stored bytes in all.
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Survey:
    """Summaries in the order of the sources, and the files whose end could not be read.

    `unread` are the stored bytes that were left out, in a survey that was told to stop; `kept` is what of
    compressed sources need not be read again.
    """

    summaries: tuple[Summary, ...]
    unreadable: tuple[Unreadable, ...]
    kept: tuple[Clippings | None, ...]
    unread: int = 0


class Joined:
    """The parts of each source, joined in order as they come in; what came too early waits."""

    def __init__(self, scanner: Scanner, sources: Sequence[Source], parts: Sequence[Sequence[Part]]) -> None:
        self.scanner = scanner
        self._sources = sources
        self._missing = [list(reversed(source_parts)) for source_parts in parts]
        self._early: dict[Part, Scanned] = {}
        self._cut: set[int] = set()  # sources that were not read to their end
        self._summaries = [Summary() for _ in sources]
        self._faults: list[tuple[int, Unreadable]] = []
        self._kept: list[Clippings | None] = [None] * len(sources)

    def add(self, part: Part, scanned: Scanned) -> None:
        missing = self._missing[part.source]
        if part.source in self._cut:
            return  # a place behind a gap has no line number
        self._early[part] = scanned
        while missing and missing[-1] in self._early:
            found = self._early.pop(missing.pop())
            if part.is_file:
                self._summaries[part.source] = found.summary
                self._kept[part.source] = found.kept
            else:
                self._summaries[part.source].append(found.summary)
            if found.fault:
                file = self._sources[part.source].file
                self._faults.append((part.source, Unreadable(file, found.fault)))
            if not found.is_whole:
                self._cut.add(part.source)
                return
        if not missing and not part.is_file:
            self._finish(part.source)

    def _finish(self, source: int) -> None:
        where = self._sources[source]
        self._summaries[source] = self.scanner.finished(
            self._summaries[source],
            where.role,
            one_rank=where.rank is not None,
            keys_bytes=keys_bytes(len(self._sources)),
        )

    def survey(self, unread: int) -> Survey:
        for source, missing in enumerate(self._missing):
            if missing or source in self._cut:
                self._finish(source)
        faults = (fault for _, fault in sorted(self._faults, key=lambda each: each[0]))
        return Survey(tuple(self._summaries), tuple(faults), tuple(self._kept), unread)


class Told:
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
