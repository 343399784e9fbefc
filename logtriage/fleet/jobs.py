"""One triaged job as the fleet sees it: its verdict, what accounting says of it, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from logtriage.report.document import Verdict

LONGEST_JOB = 400 * 86_400.0  # seconds; times further apart than this are a broken clock, not a job
HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class TriagedJob:
    """`key` is how its source knows it (a path below the root, an id); `night` the one that gave the verdict.

    Times are seconds since 1970; `started`, `ended`, `gpus` and `nodes` are those of accounting where that
    is known, else those of the logs.
    """

    key: str
    verdict: Verdict
    night: int
    name: str = ""
    user: str = ""
    started: float | None = None
    ended: float | None = None
    gpus: int | None = None
    nodes: tuple[str, ...] = ()
    lost_nodes: tuple[str, ...] = ()  # as the scheduler declared them, of earlier runs as well

    @property
    def failure_type(self) -> str:
        return self.verdict.verdict.failure_type


@dataclass(frozen=True, slots=True)
class Loss:
    """Work that was thrown away, in hours of `unit` (GPUs or ranks), counted from `since`."""

    hours: float
    unit: str  # GPUs | ranks
    since: str  # checkpoint | start


def is_failure(verdict: Verdict) -> bool:
    """Whether the job ended badly: not well, not still running, and not merely slow."""
    kind = verdict.verdict.failure_type
    return not kind.startswith(("none.", "slow.")) and verdict.job.outcome != "running"


def seconds_run(started: float | None, ended: float | None) -> float | None:
    """How long a job ran; None where its times are unknown or cannot be true."""
    if started is None or ended is None or not 0 <= ended - started <= LONGEST_JOB:
        return None
    return ended - started


def duration(job: TriagedJob) -> float | None:
    """How long it ran, in seconds."""
    return seconds_run(job.started, job.ended)


def loss(job: TriagedJob) -> Loss | None:
    """What its failure threw away: GPUs (else ranks) × the time since the last checkpoint, else the start.

    None for jobs that did not fail, and where size or times are unknown.
    """
    verdict = job.verdict
    width, unit = (job.gpus, "GPUs") if job.gpus else (verdict.job.ranks, "ranks")
    if not is_failure(verdict) or not width:
        return None
    lost = verdict.verdict.lost
    if lost is not None and 0 < lost.seconds <= LONGEST_JOB:
        return Loss(width * lost.seconds / HOUR, unit, lost.since)
    ran = duration(job)  # where no step was reported, all of it was for nothing
    return None if ran is None else Loss(width * ran / HOUR, unit, "start")
