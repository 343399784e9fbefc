"""What a night found, put together: the same state gives the same digest, whoever did the work."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logtriage.fleet.hosts import HostFigures, host_figures
from logtriage.fleet.incidents import Incident, incidents
from logtriage.fleet.jobs import TriagedJob, is_failure, loss
from logtriage.fleet.reliability import Day, Reliability, reliability, trend
from logtriage.fleet.retries import RetryChain, retry_chains
from logtriage.fleet.store import Night, Untriaged
from logtriage.report.document import Verdict, iso_time
from logtriage.taxonomy import taxonomy

UNSURE = 0.4  # verdicts below this confidence deserve a person as well
WINDOW_DAYS = 90  # what a digest looks back on, by when the verdict was given


@dataclass(frozen=True, slots=True)
class TypeCount:
    """Jobs of one failure type, in this night and in all, and the hours that those of this night lost."""

    failure_type: str
    failure_class: str
    tonight: int
    known: int
    lost_hours: float


@dataclass(frozen=True, slots=True)
class Lost:
    """Hours lost this night, by their unit and what they count from; of `unknown` jobs nothing is known."""

    hours: float
    parts: tuple[tuple[str, str, float, int], ...]  # (GPUs | ranks, checkpoint | start, hours, jobs)
    unknown: int


@dataclass(frozen=True, slots=True)
class Digest:
    """Everything that is shown of a night; jobs in order of their keys, the rest most telling first."""

    date: str  # when the night began, ISO 8601 in UTC: all that differs between two runs on one state
    before: str  # when the last one began, empty for the first
    place: str
    night: int
    tonight: tuple[TriagedJob, ...]
    known: int  # jobs with a verdict in the window, with those of this night
    running: tuple[str, ...]  # keys of jobs whose logs are still being written
    untriaged: tuple[Untriaged, ...]  # of this night
    notes: tuple[str, ...]  # what the listing passed over and which source did not answer
    types: tuple[TypeCount, ...]
    classes: tuple[tuple[str, int], ...]  # failed jobs of this night, most frequent class first
    lost: Lost
    incidents: tuple[Incident, ...]
    hosts: tuple[HostFigures, ...]  # of 28 days: lemons, hosts to watch, and others where several jobs broke
    hosts_seen: int
    chains: tuple[RetryChain, ...]  # with a run of this night
    reliability: Reliability
    trend: tuple[Day, ...]
    unknowns: tuple[TriagedJob, ...]  # of this night: they deserve a person

    @property
    def failed(self) -> tuple[TriagedJob, ...]:
        return tuple(job for job in self.tonight if is_failure(job.verdict))

    @property
    def new_incidents(self) -> tuple[Incident, ...]:
        return tuple(each for each in self.incidents if each.tonight and each.is_new)

    @property
    def recurring(self) -> tuple[Incident, ...]:
        return tuple(each for each in self.incidents if each.tonight and not each.is_new)

    @property
    def lemons(self) -> tuple[HostFigures, ...]:
        return tuple(each for each in self.hosts if each.standing == "lemon")


def digest(
    place: str,
    night: Night,
    jobs: Iterable[TriagedJob],
    untriaged: Sequence[Untriaged] = (),
    running: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Digest:
    """The digest of a night from all that the store knows."""
    known = sorted(jobs, key=lambda job: job.key)
    tonight = tuple(job for job in known if job.night == night.id)
    hosts = host_figures(map(_accounted, known), lost={job.verdict.id: job.lost_nodes for job in known})
    chains = retry_chains(known)
    failed = [job for job in tonight if is_failure(job.verdict)]
    return Digest(
        date=(iso_time(night.began) or "")[:16] + "Z",
        before="" if night.before is None else (iso_time(night.before) or "")[:16] + "Z",
        place=place,
        night=night.id,
        tonight=tonight,
        known=len(known),
        running=tuple(sorted(running)),
        untriaged=tuple(each for each in untriaged if each.night == night.id),
        notes=tuple(notes),
        types=_types(known, night.id),
        classes=_most_frequent(job.verdict.verdict.failure_class for job in failed),
        lost=_lost(failed),
        incidents=tuple(incidents(known, night.id)),
        hosts=tuple(each for each in hosts if each.standing or each.faults > 1),
        hosts_seen=len(hosts),
        chains=tuple(each for each in chains if any(job.night == night.id for job in each.jobs)),
        reliability=reliability(known),
        trend=tuple(trend(known)),
        unknowns=_unknowns(failed),
    )


def page_name(job: TriagedJob) -> str:
    """The file of a job's own page: harmless whatever its key holds."""
    return hashlib.sha256(job.key.encode("utf-8", "surrogateescape")).hexdigest()[:16] + ".html"


def _accounted(job: TriagedJob) -> Verdict:
    """The verdict with the nodes and times that accounting knows: by them is counted what a host ran."""
    facts = {"hosts": job.nodes, "started": iso_time(job.started), "ended": iso_time(job.ended)}
    return job.verdict.model_copy(update={"job": job.verdict.job.model_copy(update=facts)})


def _types(known: Sequence[TriagedJob], night: int) -> tuple[TypeCount, ...]:
    told = []
    for kind, count in Counter(job.failure_type for job in known).items():
        mine = [job for job in known if job.night == night and job.failure_type == kind]
        losses = (loss(job) for job in mine)
        failure_class = taxonomy()[kind].failure_class if kind in taxonomy() else ""
        hours = sum(each.hours for each in losses if each is not None)
        told.append(TypeCount(kind, failure_class, len(mine), count, hours))
    return tuple(sorted(told, key=lambda each: (-each.tonight, -each.known, each.failure_type)))


def _most_frequent(names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(names).items(), key=lambda each: (-each[1], each[0])))


def _lost(failed: Sequence[TriagedJob]) -> Lost:
    parts: dict[tuple[str, str], list[float]] = {}
    unknown = 0
    for job in failed:
        lost = loss(job)
        if lost is None:
            unknown += 1
        else:
            parts.setdefault((lost.unit, lost.since), []).append(lost.hours)
    told = tuple((*key, sum(hours), len(hours)) for key, hours in sorted(parts.items()))
    return Lost(sum(each[2] for each in told), told, unknown)


def _unknowns(failed: Sequence[TriagedJob]) -> tuple[TriagedJob, ...]:
    """Failures that no rule explains, the dearest first."""

    def order(job: TriagedJob) -> tuple[float, str]:
        lost = loss(job)
        return (-lost.hours if lost is not None else 0.0, job.key)

    unsure = (
        job for job in failed if job.failure_type == "unknown" or job.verdict.verdict.confidence < UNSURE
    )
    return tuple(sorted(unsure, key=order))
