"""A night: list the jobs, triage those whose logs are new or have changed, and tell what was found."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from logtriage.fleet.digest import WINDOW_DAYS, Digest, digest
from logtriage.fleet.fingerprint import Fingerprint, fingerprint
from logtriage.fleet.listing import jobs_below
from logtriage.fleet.store import FleetStore, Night
from logtriage.fleet.supervision import FAULTY, TRIAGED, UNREADABLE, Outcome, Task
from logtriage.intake.folder import NothingReadable
from logtriage.memory.verdicts import keep
from logtriage.report.document import read_verdict
from logtriage.sources.job import JobSource, KnownJob, SourceFault

FIRST_LOOK_BACK = 7 * 86_400.0  # seconds; what sources are asked for in the first night
OVERLAP = 86_400.0  # seconds before the last night: what was late, or was running then

Triage = Callable[[Sequence[Task]], Iterator[tuple[Task, Outcome]]]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Jobs that may be new, and what was passed over or did not answer, one plain line each.

    `source_of` collects what must be fetched first, by the key of the job.
    """

    jobs: tuple[KnownJob, ...]
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    source_of: dict[str, JobSource] | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A night that is over: `read` jobs were read in this run, `broken` of the night could not be triaged."""

    digest: Digest
    read: int
    broken: int
    faults: tuple[str, ...]


def in_folder(root: Path) -> Candidates:
    """The jobs below a folder. Raises NothingReadable where there is none."""
    try:
        found = jobs_below(root)
    except OSError as fault:
        raise NothingReadable(f"{root}: {fault.strerror}") from None
    if not found.jobs:
        raise NothingReadable(f"no job below {root}: name the folder that holds the logs of jobs")
    some = ", ".join(found.loose[:3]) + (", …" if len(found.loose) > 3 else "")
    notes = (f"{len(found.loose)} files or folders belong to no job: {some}",) if found.loose else ()
    return Candidates(found.jobs, notes)


def in_sources(sources: Sequence[JobSource], since: float) -> Candidates:
    """The jobs that sources say have ended since then. Raises NothingReadable where none of them answers."""
    jobs: dict[str, KnownJob] = {}
    source_of: dict[str, JobSource] = {}
    faults = []
    for source in sources:
        try:
            for job in source.ended(since):
                key = f"{source.name}/{job.id}"
                jobs[key] = replace(job, id=key, name=job.name or job.id)
                source_of[key] = source
        except SourceFault as fault:
            faults.append(f"{source.name}: {fault}")
    if faults and len(faults) == len(sources):
        raise NothingReadable("; ".join(faults))
    return Candidates(tuple(jobs[key] for key in sorted(jobs)), (), tuple(faults), source_of)


def since_last(night: Night) -> float:
    """From when on sources are asked for jobs that ended."""
    return night.began - FIRST_LOOK_BACK if night.before is None else night.before - OVERLAP


def run_night(
    store: FleetStore,
    night: Night,
    found: Candidates,
    triage: Triage,
    *,
    settled_seconds: float,
    oldest: float | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Triage what is new, and put the digest together; the caller ends the night once that is written.

    Jobs whose logs changed within `settled_seconds` before now, or that their source calls running, are left
    for the next night; those whose logs changed last before `oldest` are passed over. Verdicts are also kept
    in `data_dir` for `confirm`. Raises LedgerFault where the state cannot be kept.
    """
    settled = time.time() - settled_seconds
    known = store.fingerprints()
    running: list[str] = []
    waiting: dict[str, tuple[KnownJob, Fingerprint]] = {}
    for job in found.jobs:
        mark = fingerprint(job.paths, f"{job.state}\0{job.exit_code}\0{job.nodes}" if job.started else "")
        ended = mark.changed if mark.changed is not None else job.ended
        if job.is_running or (ended is not None and ended > settled):
            running.append(job.id)
        elif known.get(job.id) != mark.digest and (oldest is None or ended is None or ended >= oldest):
            waiting[job.id] = job, mark
    with ExitStack() as spools:
        done = 0
        for task, outcome in _outcomes(found, waiting, triage, spools):
            job, mark = waiting[task.key]
            is_over = outcome.status != FAULTY  # else it is tried again next night
            store.keep(job, mark.digest if is_over else "", outcome, night, time.time())
            if outcome.verdict is not None and data_dir is not None:
                keep(read_verdict(outcome.verdict), job.paths, data_dir, user=job.user)
            done += 1
            if progress is not None:
                said = job.id if outcome.status == TRIAGED else f"{job.id}: {outcome.reason}"
                progress(said, done, len(waiting))
    since = night.began - WINDOW_DAYS * 86_400
    notes = (*found.notes, *found.faults)
    told = digest(store.place, night, store.triaged(since), store.untriaged(since), running, notes)
    broken = sum(each.status != UNREADABLE for each in told.untriaged)
    return Finished(told, done, broken, found.faults)


def _outcomes(
    found: Candidates,
    waiting: dict[str, tuple[KnownJob, Fingerprint]],
    triage: Triage,
    spools: ExitStack,
) -> Iterator[tuple[Task, Outcome]]:
    tasks = []
    for key, (job, mark) in waiting.items():
        paths = job.paths
        source = (found.source_of or {}).get(key)
        if source is not None:
            spool = spools.enter_context(tempfile.TemporaryDirectory(prefix="logtriage-"))
            try:
                paths = source.collect(replace(job, id=key.removeprefix(f"{source.name}/")), Path(spool))
            except SourceFault as fault:
                yield Task(key, ()), Outcome(FAULTY, reason=str(fault))
                continue
        tasks.append(Task(key, paths, mark.bytes))
    yield from triage(tasks)
