"""The pass over all files of a job: one summary a file, on several cores when there is enough to do."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from logtriage.mining.joined import Joined, Report, Survey, Told
from logtriage.mining.parts import Part, Scanned, parts_of, reuse_memory, scan_part
from logtriage.mining.scanner import Scanner
from logtriage.model import Source
from logtriage.rulebank.database import Databases
from logtriage.rulebank.matcher import Matcher

PARALLEL_BYTES = 48 << 20  # below this, starting processes costs more than it saves
# (root, sources, parts of them, extra rule files) → what was found in each part, as it comes.
Elsewhere = Callable[[Path, Sequence[Source], Sequence[Part], Sequence[Path]], Iterator[tuple[Part, Scanned]]]
BULK_BYTES = 48 << 20  # below this, loading numpy and making machine code does
KEPT_BYTES = 4 << 20  # below this, loading the pattern databases does, and …
DATABASE_BYTES = 24 << 20  # … below this, compiling them


def survey(
    root: Path,
    sources: Sequence[Source],
    matcher: Matcher,
    *,
    workers: int | None = None,
    rules: Sequence[Path] = (),
    progress: Report | None = None,
    enough: threading.Event | None = None,
    elsewhere: Elsewhere | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Survey:
    """Scan every source. `rules` are the extra rule files that `matcher` was built with.

    `elsewhere` reads the parts of a large job on other machines, instead of processes of this one. While
    processes of this one read, it does what it is to do `meanwhile`; where it reads itself it does not.
    Once `enough` is set, the reading ends and what is known so far is the result. Raises KeyboardInterrupt
    if that is nothing.
    """
    total = sum(source.size for source in sources)
    processes = workers or os.cpu_count() or 1
    parts = parts_of(root, sources, processes)
    count = min(processes, sum(map(len, parts)))
    told = Told(total, progress)
    enough = enough or threading.Event()
    is_shared = (count > 1 or elsewhere is not None) and total >= PARALLEL_BYTES
    patterns = _databases(matcher, total, is_shared=is_shared)
    joined = Joined(Scanner(matcher, patterns, in_bulk=total >= BULK_BYTES), sources, parts)
    if is_shared and elsewhere is not None:
        for part, scanned in elsewhere(root, sources, [*itertools.chain.from_iterable(parts)], rules):
            joined.add(part, scanned)
            told.file = sources[part.source].file
            told((part.stop or sources[part.source].size) - part.start)
    elif is_shared:
        from logtriage.mining.processes import in_processes

        prepare(matcher, total, processes)
        in_processes(count, root, sources, parts, rules, told, enough, joined, meanwhile)
    else:
        if patterns is not None:
            reuse_memory()
        for part in itertools.chain.from_iterable(parts):
            if enough.is_set():
                break
            source = sources[part.source]
            told.file = source.file
            scanned = scan_part(joined.scanner, root, source, part, len(sources), told, enough.is_set)
            joined.add(part, scanned)
    unread = max(0, total - told.done) if enough.is_set() else 0
    found = joined.survey(unread)
    if unread and not any(each.bytes for each in found.summaries):
        raise KeyboardInterrupt
    return found


def prepare(matcher: Matcher, total: int, processes: int) -> None:
    """Load what so many processes take to read so many bytes: copies of this one have it from their start."""
    if processes < 2 or total < PARALLEL_BYTES:
        return
    from logtriage.mining.tally import machine_code

    if (patterns := matcher.databases) is not None:
        patterns.compile()
    machine_code()


def _databases(matcher: Matcher, total: int, *, is_shared: bool) -> Databases | None:
    """The patterns of the matcher's bank, where so many bytes are worth what they cost."""
    if is_shared or total >= DATABASE_BYTES:
        return matcher.databases
    found = matcher.databases if total >= KEPT_BYTES else None
    return found if found is not None and found.are_kept() else None
