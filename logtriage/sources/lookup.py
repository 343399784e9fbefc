"""The configured sources, asked together: which jobs are meant, and where their logs are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ValidationError

from logtriage.settings import Settings, SettingsFault, settings_file
from logtriage.sources.job import JobSource, KnownJob, SourceFault
from logtriage.sources.likeness import near, order
from logtriage.sources.roots import Refused, checked, is_path

# The kinds that are shipped; every other is an entry point of the group, a pydantic model as these are.
SHIPPED = {
    "folders": ("logtriage.sources.folders", "Folders"),
    "kubernetes": ("logtriage.sources.kubernetes", "Kubernetes"),
    "slurm": ("logtriage.sources.slurm", "Slurm"),
    "store": ("logtriage.sources.stores", "Store"),
}
GROUP = "logtriage.sources"
_REMEMBERED = 30 * 86_400.0  # seconds back to which near matches are looked for
_MOST_REMEMBERED = 20_000


@runtime_checkable
class _Listing(Protocol):
    """A source that knows all its jobs by name, for less than it costs to tell when each ended."""

    def known(self) -> list[KnownJob]: ...


@dataclass(frozen=True, slots=True)
class Found:
    """The jobs that were asked for, best first; and where there is none, why.

    `unasked` names the sources that could not be asked, `near` what may have been meant; `refused` is the
    plain answer to a question that no source was asked.
    """

    jobs: tuple[KnownJob, ...] = ()
    unasked: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Collected:
    """Paths to triage together, and what could not be fetched, one plain line each."""

    paths: tuple[str, ...]
    missed: tuple[str, ...]


def configured_sources(settings: Settings) -> list[JobSource]:
    """The sources of the `[[sources]]` tables, in their order; two of one name are numbered.

    Raises SettingsFault that names file, table and key.
    """
    sources: list[JobSource] = []
    for number, table in enumerate(settings.sources, 1):
        where = f"{settings_file()}: [[sources]] number {number}"
        source = _source(table, where)
        taken = {each.name for each in sources}
        if source.name in taken:
            names = (f"{source.name}-{count}" for count in range(2, len(sources) + 3))
            free = next(name for name in names if name not in taken)
            source = _source({**table, "name": free}, where)
        sources.append(source)
    return sources


def _source(table: Mapping[str, Any], where: str) -> JobSource:
    kind = str(table.get("kind", ""))
    try:
        make = _maker(kind)
        return make(table)
    except KeyError:
        known = ", ".join(sorted({*SHIPPED, *(each.name for each in entry_points(group=GROUP))}))
        raise SettingsFault(f"{where}: kind: there is no source {kind!r}; there are {known}") from None
    except ImportError as fault:
        raise SettingsFault(f"{where}: the source {kind!r} cannot be loaded: {fault}") from None
    except ValidationError as fault:
        first = fault.errors()[0]
        key = ".".join(map(str, first["loc"])) or kind
        unknown = f"a source of the kind {kind!r} has no such key"
        said = unknown if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
        raise SettingsFault(f"{where}: {key}: {said}") from None


def _maker(kind: str) -> Callable[[Mapping[str, Any]], JobSource]:
    """What makes a source of this kind of its table. Raises KeyError."""
    if kind in SHIPPED:
        module, name = SHIPPED[kind]
        model: type[BaseModel] = getattr(import_module(module), name)
    else:
        model = entry_points(group=GROUP)[kind].load()
    return model.model_validate  # type: ignore[return-value]


def find_jobs(asked: str, sources: Sequence[JobSource], limit: int = 10) -> Found:
    """The jobs whose id, name, user or path is `asked`, from all sources at once; nothing is raised."""
    try:
        asked = checked(asked)
    except Refused as refusal:
        return Found(refused=str(refusal))
    answers = _each(sources, lambda source: source.find(asked, limit))
    jobs = [job for answer in answers for job in answer[1]]
    unasked = tuple(said for said, _ in answers if said)
    joined = _joined(jobs)
    joined.sort(key=lambda job: order(job, asked))
    if is_path(asked):
        # One answer for all of these: whether a path elsewhere is there is nobody's business.
        refused = "" if joined else f"{asked} is not there, or not below a folder that is configured"
        return Found(tuple(joined[:limit]), unasked, refused=refused)
    if joined or not sources:
        return Found(tuple(joined[:limit]), unasked, refused="" if sources else NO_SOURCE)
    since = time.time() - _REMEMBERED
    lately = _each(sources, lambda source: list(islice(_remembered(source, since), _MOST_REMEMBERED)))
    return Found(unasked=unasked, near=near(asked, (job for _, each in lately for job in each)))


def _remembered(source: JobSource, since: float) -> Iterable[KnownJob]:
    """Jobs whose names a question may have meant: all that a source lists with ease, or the last ones."""
    return source.known() if isinstance(source, _Listing) else source.ended(since)


NO_SOURCE = "no source of jobs is configured: add a [[sources]] table to logtriage.toml"


def ended_jobs(sources: Sequence[JobSource], since: float) -> tuple[list[KnownJob], tuple[str, ...]]:
    """All jobs that ended at `since` or later, each once; and what kept sources from answering."""
    answers = _each(sources, lambda source: list(source.ended(since)))
    jobs = [job for _, answer in answers for job in answer]
    return _joined(jobs), tuple(said for said, _ in answers if said)


def _each(
    sources: Sequence[JobSource], ask: Callable[[JobSource], list[KnownJob]]
) -> list[tuple[str, list[KnownJob]]]:
    """(what kept a source from answering, its answer) for each, asked side by side."""

    def asked(source: JobSource) -> tuple[str, list[KnownJob]]:
        try:
            return "", ask(source)
        except SourceFault as fault:
            return f"{source.name}: {fault}", []
        except Exception as fault:  # a source from elsewhere must not silence the others
            return f"{source.name}: {type(fault).__name__}: {fault}", []

    if not sources:
        return []
    with ThreadPoolExecutor(min(8, len(sources))) as pool:
        return list(pool.map(asked, sources))


def _joined(jobs: Sequence[KnownJob]) -> list[KnownJob]:
    """One record for a job that several sources know: a scheduler's facts, the paths of all."""
    joined: list[KnownJob] = []
    places: dict[str, list[int]] = {}
    for job in sorted(jobs, key=lambda each: not each.state):
        alike = places.setdefault(job.id, [])
        at = next((at for at in alike if _is_same(joined[at], job)), None)
        if at is None:
            alike.append(len(joined))
            joined.append(job)
        else:
            joined[at] = _with(joined[at], job)
    return joined


def _with(known: KnownJob, job: KnownJob) -> KnownJob:
    newest = max(filter(None, (known.ended, job.ended)), default=None)
    return replace(
        known,
        name=known.name or job.name,
        user=known.user or job.user,
        ended=known.ended if known.state else newest,
        paths=tuple(dict.fromkeys((*known.paths, *job.paths))),
        also=(*known.also, job),
    )


def _is_same(known: KnownJob, job: KnownJob) -> bool:
    # Two schedulers count from 1 alike: only logs that nobody accounts for belong to a scheduler's job.
    both_say = known.state and job.state
    others = known.user and job.user and known.user != job.user
    return not both_say and not others


def collect(job: KnownJob, sources: Sequence[JobSource], folder: Path) -> Collected:
    """What all sources that know the job have of it; what must be fetched is written below `folder`.

    Raises SourceFault where none has anything.
    """
    paths: list[str] = []
    missed: list[str] = []
    by_name = {source.name: source for source in sources}
    for each in (job, *job.also):
        source = by_name.get(each.source)
        if source is None:
            continue
        own = folder / source.name
        own.mkdir(parents=True, exist_ok=True)
        # What a joined job was given of its other sources is theirs to fetch.
        theirs = {path for other in each.also for path in other.paths}
        asked = replace(each, paths=tuple(path for path in each.paths if path not in theirs), also=())
        try:
            paths += source.collect(asked, own)
        except SourceFault as fault:
            missed.append(f"{source.name}: {fault}")
        with contextlib.suppress(OSError):
            own.rmdir()  # where nothing was written
    if not paths:
        raise SourceFault("; ".join(missed) or f"no configured source knows job {job.id}")
    return Collected(tuple(dict.fromkeys(paths)), tuple(missed))
