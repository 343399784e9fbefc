"""How often jobs fail: mean time between failures, and day by day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import exp, lgamma, log, sqrt

from logtriage.fleet.hosts import machine_fault_hosts
from logtriage.fleet.jobs import HOUR, TriagedJob, duration, is_failure, loss

TREND_DAYS = 30


@dataclass(frozen=True, slots=True)
class Reliability:
    """Hours that jobs ran and failures in them.

    `gpu_hours` count GPUs where accounting knows them, else ranks. `measured` of `jobs` have times and a
    size; the failures are those of measured jobs, `machine_failures` those of them by a fault of one machine.
    """

    jobs: int
    measured: int
    gpu_hours: float
    node_hours: float
    failures: int
    machine_failures: int

    @property
    def gpu_hours_between_failures(self) -> float | None:
        return self.gpu_hours / self.failures if self.failures and self.gpu_hours else None

    @property
    def machine_failures_per_1000_node_days(self) -> float | None:
        """The figure of Kokolis et al., arXiv:2410.21680, which found 2.34 and 6.50 on two clusters."""
        return self.machine_failures / self.node_hours * 24_000 if self.node_hours else None

    @property
    def bounds_per_1000_node_days(self) -> tuple[float, float] | None:
        """Its exact 95 % interval for a Poisson count (Garwood, Biometrika 1936)."""
        if not self.node_hours:
            return None
        low, high = poisson_bounds(self.machine_failures)
        return low / self.node_hours * 24_000, high / self.node_hours * 24_000


@dataclass(frozen=True, slots=True)
class Day:
    """One day in UTC: jobs that ended, those of them that failed, and GPU-hours (else rank-hours) lost."""

    date: str
    jobs: int
    failed: int
    lost_hours: float


def reliability(jobs: Iterable[TriagedJob]) -> Reliability:
    """Of all jobs, healthy ones as well: what a fleet ran is what failures are counted against."""
    total = measured = failures = machine = 0
    gpu_hours = node_hours = 0.0
    for job in jobs:
        total += 1
        ran = duration(job)
        width = job.gpus or job.verdict.job.ranks
        if ran is None or not (width or job.nodes):
            continue
        measured += 1
        gpu_hours += width * ran / HOUR
        node_hours += len(job.nodes) * ran / HOUR
        failures += is_failure(job.verdict) or bool(job.lost_nodes)
        machine += bool(machine_fault_hosts(job.verdict) or job.lost_nodes)
    return Reliability(total, measured, gpu_hours, node_hours, failures, machine)


def trend(jobs: Sequence[TriagedJob], days: int = TREND_DAYS) -> list[Day]:
    """The days up to the one on which the last job ended, oldest first; empty where no job tells a time."""
    ends = {job.key: date for job in jobs if (date := _date(job.ended)) is not None}
    if not ends:
        return []
    last = max(ends.values())
    told = []
    for back in range(days - 1, -1, -1):
        date = last - timedelta(days=back)
        those = [job for job in jobs if ends.get(job.key) == date]
        losses = [lost.hours for job in those if (lost := loss(job)) is not None]
        failed = sum(is_failure(job.verdict) for job in those)
        told.append(Day(date.strftime("%Y-%m-%d"), len(those), failed, sum(losses)))
    return told


def _date(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    except (OverflowError, ValueError, OSError):
        return None


def poisson_bounds(count: int) -> tuple[float, float]:
    """The means between which `count` events lie with 95 %, each tail 2.5 %."""

    def tail(mean: float, least: int) -> float:  # P(Poisson(mean) >= least)
        return 1 - sum(exp(hit * log(mean) - mean - lgamma(hit + 1)) for hit in range(least))

    def solved(least: int, share: float) -> float:
        low, high = 1e-9, count + 10 * sqrt(count + 4)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle, least) < share else (low, middle)
        return high

    return solved(count, 0.025) if count else 0.0, solved(count + 1, 0.975)
