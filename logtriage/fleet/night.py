"""A night: list the jobs, triage those whose logs are new or have changed, and tell what was found."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from logtriage.fleet.digest import WINDOW_DAYS, Digest, digest
from logtriage.fleet.fingerprint import Fingerprint, fingerprint
from logtriage.fleet.listing import jobs_below
from logtriage.fleet.store import FleetStore, Night
from logtriage.fleet.supervision import FAULTY, TRIAGED, UNREADABLE, Outcome, Task
from logtriage.intake.folder import NothingReadable
from logtriage.memory.verdicts import keep
from logtriage.report.document import read_verdict
from logtriage.report.visible import visible
from logtriage.sources.job import JobSource, KnownJob, SourceFault
from logtriage.sources.lookup import collect, ended_jobs

FIRST_LOOK_BACK = 7 * 86_400.0  # seconds; what sources are asked for in the first night
OVERLAP = 86_400.0  # seconds before the last night: what was late, or was running then

Triage = Callable[[Sequence[Task]], Iterator[tuple[Task, Outcome]]]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Jobs that may be new, by the key under which they are remembered.

    `notes` say what was passed over, `faults` which source did not answer, one plain line each. `sources` are
    asked for the logs of the jobs.
    """

    jobs: Mapping[str, KnownJob]
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    sources: tuple[JobSource, ...] = ()


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
    return Candidates({job.id: job for job in found.jobs}, notes)


def in_sources(sources: Sequence[JobSource], since: float) -> Candidates:
    """The jobs that sources say have ended since then. Raises NothingReadable where none of them answers."""
    ended, faults = ended_jobs(sources, since)
    if faults and len(faults) == len(sources):
        raise NothingReadable("; ".join(faults))
    jobs: dict[str, KnownJob] = {}
    for job in sorted(ended, key=lambda each: (each.id, each.user, each.source, each.name, each.paths)):
        key = visible("/".join(filter(None, (job.user, job.id))), 500)
        # Two schedulers may count alike.
        jobs[key if key not in jobs else visible(f"{job.source}/{job.name}/{key}", 500)] = job
    return Candidates(jobs, (), faults, tuple(sources))


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
    for key, job in found.jobs.items():
        mark = fingerprint(job.paths, f"{job.state}\0{job.exit_code}\0{job.nodes}" if job.started else "")
        ended = mark.changed if mark.changed is not None else job.ended
        if job.is_running or (ended is not None and ended > settled):
            running.append(key)
        elif known.get(key) != mark.digest and (oldest is None or ended is None or ended >= oldest):
            waiting[key] = job, mark
    with ExitStack() as spools:
        done = 0
        outcomes = spools.enter_context(closing(_outcomes(found.sources, waiting, triage, spools)))
        for task, outcome in outcomes:
            job, mark = waiting[task.key]
            if outcome.verdict is not None:
                try:
                    verdict = read_verdict(outcome.verdict)
                except ValueError as fault:  # a worker of another version
                    outcome = Outcome(FAULTY, reason=f"its verdict cannot be read: {fault}")
                else:
                    if data_dir is not None:
                        keep(verdict, job.paths, data_dir, user=job.user)
            is_over = outcome.status != FAULTY  # else it is tried again next night
            store.keep(task.key, job, mark.digest if is_over else "", outcome, night, time.time())
            done += 1
            if progress is not None:
                said = task.key if outcome.status == TRIAGED else f"{task.key}: {outcome.reason}"
                progress(said, done, len(waiting))
    since = night.began - WINDOW_DAYS * 86_400
    notes = (*found.notes, *found.faults)
    told = digest(store.place, night, store.triaged(since), store.untriaged(since), running, notes)
    broken = sum(each.status != UNREADABLE for each in told.untriaged)
    return Finished(told, done, broken, found.faults)


def _outcomes(
    sources: Sequence[JobSource],
    waiting: Mapping[str, tuple[KnownJob, Fingerprint]],
    triage: Triage,
    spools: ExitStack,
) -> Generator[tuple[Task, Outcome], None, None]:
    tasks = []
    for key, (job, mark) in waiting.items():
        paths = job.paths
        if sources:
            spool = spools.enter_context(tempfile.TemporaryDirectory(prefix="logtriage-"))
            try:
                paths = collect(job, sources, Path(spool)).paths
            except SourceFault as fault:
                yield Task(key, ()), Outcome(FAULTY, reason=str(fault))
                continue
        tasks.append(Task(key, paths, mark.bytes))
    yield from triage(tasks)
