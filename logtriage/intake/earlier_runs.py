"""Runs that lie beside the one that is asked about: a folder of runs is triaged for its last.

People keep the folders of several runs in one (`outputs/2026-03-04/10-15-00/`, `run1/`, `run2/`), or files
that a job's id tells apart (`slurm-4811.out`, `slurm-4812.out`). A run that ended before another began has no
part in how that one died. Parts of one run (ranks, nodes, attempts, streams) are written at the same time, or
are called so. Folders with names of any kind are runs if a day lies between them. What has no times stays
with the last run.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from logtriage.intake.folder import Inventory
from logtriage.intake.identity import identify_all
from logtriage.intake.reading import Extent, read_windows
from logtriage.intake.streams import StreamFault
from logtriage.model import JOB_ROLES, Source, SourceRole
from logtriage.regex import regex

GAP_SECONDS = 120.0  # between runs whose names do not say that they are runs
DAY_SECONDS = 86_400.0  # as much between folders that share neither names nor files; clocks differ by less
LOOKED_AT = 6  # files of a run, whose ends tell when it was
ENDS_BYTES = 8 << 10

# What a part of one run is called.
_PART = regex(
    r"(?i)^(?:\d{1,2}|(?:std)?(?:logs?|outputs?|out|err|io)|sys(?:tem)?|kernel|dmesg|console|torchelastic|nccl|dumps?"
    r"|flight[-_]?recorder|stacks?|scheduler|slurm|k8s|kubernetes|events|diagnos\w*|notes?|debug"
    r"|(?:[a-z]+[-_.])*(?:ranks?|nodes?|hosts?|workers?|pods?|gpus?|attempts?|local|replicas?|proc(?:ess)?|tasks?|trainers?"
    r"|masters?|chief|ps|servers?|head|launchers?|actors?|stages?|shards?|instances?|machines?)(?:[-_.]?[\da-z]{1,4})*)$"
)
_TIME = r"20\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[-_.T ]{0,2}[0-2]\d[-_.:h]?[0-5]\d(?:[-_.:m]?[0-5]\d)?)?"
_OF_DAY = r"[0-2]\d[-_.][0-5]\d[-_.][0-5]\d"
# What a run is called: by a time, a job's id, or a word for it.
_RUN = regex(
    rf"(?i)^(?:.*(?<!\d)(?:{_TIME})(?!\d).*|{_OF_DAY}(?:[-_.].*)?|\d{{4,}}(?:[-_].*)?"
    r"|(?:.*[^a-z])?(?:runs?|jobs?|exp(?:eriment)?s?|trials?|tr(?:y|ies)|restarts?|sessions?|versions?|launch(?:es)?)"
    r"(?:[-_.]?\d.*|[-_.][\w.-]{1,60})|none_\w{8})$"
)
# The same within the name of a file; a number alone is that of a job if it is none of a process or a step.
_RUN_OF_FILE = regex(
    rf"(?i)(?<!\d)(?:{_TIME}|{_OF_DAY})(?!\d)"
    r"|(?<![a-z])(?:run|job|exp(?:eriment)?|trial|try|restart|session|version|launch)[-_.=]?(?:id[-_.=]?)?\d+(?!\d)"
    r"|(?<![a-z\d])(?<!pid[-_.=])(?<!proc[-_.=])(?<!rank[-_.=])(?<!step[-_.=])(?<!iter[-_.=])(?<!port[-_.=])\d{4,}(?!\d)"
)


_NUMBER = regex(r"\d+")


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that ended before the last one began: its name, when it ended, and its files."""

    name: str
    ended: float
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Run:
    name: str
    sources: Sequence[Source]
    least_gap: float = 0.0  # seconds between it and the run after it


def earlier_runs(
    root: Path, sources: Sequence[Source], extents: Mapping[str, Extent]
) -> tuple[EarlierRun, ...]:
    """The runs that ended before the last one of these logs began, oldest first.

    None where names do not part the logs into runs, or all ran at once.
    """
    found: list[EarlierRun] = []
    rest = list(sources)
    while past := _before_the_last(root, rest, extents):
        found += past
        gone = frozenset[str]().union(*(each.files for each in past))
        rest = [source for source in rest if source.file not in gone]
    return tuple(sorted(found, key=lambda each: each.ended))


def of_the_last(inventory: Inventory, earlier: Sequence[EarlierRun]) -> Inventory:
    """What is there without earlier runs; what the names of the others tell is read without theirs."""
    gone = frozenset[str]().union(*(each.files for each in earlier))
    left = [source for source in inventory.sources if source.file not in gone]
    told = identify_all(source.file for source in left)
    renamed = {}
    for source in left:
        known = told[source.file]
        own = known.rank is not None or known.local_rank is not None
        role = source.role
        if role in (SourceRole.WORKER, SourceRole.MERGED):
            role = SourceRole.WORKER if own else SourceRole.MERGED
        renamed[source.file] = replace(
            source,
            role=role,
            rank=known.rank,
            local_rank=known.local_rank,
            node_rank=known.node_rank,
            host=known.host,
            attempt=known.attempt,
        )
    artefacts = [
        replace(each, source=renamed.get(each.source.file, each.source))
        for each in inventory.artefacts
        if each.source.file not in gone and not _lies_in(each.source.file, earlier)
    ]
    return replace(inventory, sources=tuple(renamed.values()), artefacts=tuple(artefacts))


def _lies_in(file: str, earlier: Sequence[EarlierRun]) -> bool:
    return any(file.startswith(f"{each.name}/") for each in earlier)


def _before_the_last(
    root: Path, sources: Sequence[Source], extents: Mapping[str, Extent]
) -> list[EarlierRun]:
    runs = _runs(sources)
    spans = [_span(root, run.sources, extents) for run in runs]
    dated = [(span, run) for span, run in zip(spans, runs, strict=True) if span is not None]
    if len(dated) < 2:
        return []
    (began, _), last = max(dated, key=lambda each: each[0])
    return [
        EarlierRun(run.name, ended, frozenset(source.file for source in run.sources))
        for (_, ended), run in dated
        if run is not last and ended + run.least_gap <= began
    ]


def _runs(sources: Sequence[Source]) -> list[_Run]:
    """What may be runs: the folders in which the job's logs part, or their files by what tells runs apart."""
    of_jobs = [source for source in sources if source.role in JOB_ROLES]
    folders = [source.file.split("/")[:-1] for source in of_jobs]
    if len(folders) < 2:
        return []
    levels = zip(*folders, strict=False)
    depth = sum(1 for _ in itertools.takewhile(lambda level: len(set(level)) == 1, levels))
    is_below = {len(folder) > depth for folder in folders}
    if len(is_below) > 1:  # some lie beside the folders of the others: parts of one run
        return []
    return _by_folder(sources, depth) if is_below == {True} else _by_name(of_jobs)


def _by_folder(sources: Sequence[Source], depth: int) -> list[_Run]:
    parted: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        parts = source.file.split("/")
        if len(parts) > depth + 1:
            parted["/".join(parts[: depth + 1])].append(source)
    last_names = {folder: folder.rsplit("/", 1)[-1] for folder in parted}
    if any(_PART.match(name) for name in last_names.values()):
        return []
    are_runs = all(_RUN.match(name) for name in last_names.values())
    are_hosts = any(
        source.host is not None and source.host == last_names[folder]
        for folder, within in parted.items()
        for source in within
    )
    names = [{source.file.rsplit("/", 1)[-1] for source in within} for within in parted.values()]
    stems = {_NUMBER.sub("#", name) for name in last_names.values()}
    if not are_runs and (are_hosts or len(stems) == 1):
        return []
    gap = 0.0 if are_runs else GAP_SECONDS if set.intersection(*names) else DAY_SECONDS
    jobs = {
        folder: within
        for folder, within in parted.items()
        if any(source.role in JOB_ROLES for source in within)
    }
    return [_Run(folder, within, gap) for folder, within in jobs.items()]


def _by_name(of_jobs: Sequence[Source]) -> list[_Run]:
    parted: dict[str, list[Source]] = defaultdict(list)
    stems: dict[str, set[str]] = defaultdict(set)
    for source in of_jobs:
        name = source.file.rsplit("/", 1)[-1]
        told = _RUN_OF_FILE.search(name)
        if told is None or told[0] in (source.host or ""):  # n4811.log: the machine's own number
            return []
        parted[told[0]].append(source)
        stems[told[0]].add(name.replace(told[0], "#", 1))
    if not stems or not set.intersection(*stems.values()):
        return []
    return [_Run(run, within) for run, within in parted.items()]


def _span(root: Path, sources: Sequence[Source], extents: Mapping[str, Extent]) -> tuple[float, float] | None:
    """When the first and the last dated line of a run was written, as far as the ends of some files tell."""
    of_jobs = [source for source in sources if source.role in JOB_ROLES]
    of_jobs.sort(key=lambda source: (source.role is SourceRole.WORKER, -source.size))
    times: list[float] = []
    for source in of_jobs[:LOOKED_AT]:
        extent = extents[source.file]
        tail = (extent.lines + 1, max(0, extent.bytes - ENDS_BYTES))
        with contextlib.suppress(StreamFault):
            read = read_windows(root, source, replace(extent, places=(tail,)), ENDS_BYTES)
            times += [line.time for line in read.lines if line.time is not None]
    return (min(times), max(times)) if times else None
