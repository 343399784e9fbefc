"""Jobs that were started again and died of the same again, and what that cost."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logtriage.fleet.hosts import host_key
from logtriage.fleet.incidents import Signature, signature
from logtriage.fleet.jobs import HOUR, TriagedJob, duration, is_failure
from logtriage.mining.masks import mask

LONGEST_PAUSE = 86_400.0  # seconds between the end of a run and the start of its retry
OVERLAP = 120.0  # seconds, and half of a run at most, that its last words may come after its retry's first
# Names whose number alone tells one job from another.
_GENERIC = {"", "id", "job", "jobid", "run", "slurm", "train", "exp", "experiment", "test", "logs", "output"}


@dataclass(frozen=True, slots=True)
class RetryChain:
    """Runs of one job, each begun after the one before had failed of the same, in order of time.

    `hours` are those of GPUs (else ranks) that all runs but the first took: what the retries cost. Of
    `unmeasured` retries size or times are unknown.
    """

    signature: Signature
    name: str
    jobs: tuple[TriagedJob, ...]
    hours: float
    unmeasured: int


def retry_chains(jobs: Iterable[TriagedJob]) -> list[RetryChain]:
    """Chains of two runs and more that failed with the same signature, the dearest first.

    Runs belong together by their name without numbers or, where that says nothing, by user and nodes.
    """
    groups: dict[tuple[str, Signature], list[TriagedJob]] = defaultdict(list)
    for job in jobs:
        if is_failure(job.verdict) and job.started is not None and job.ended is not None:
            groups[_kinship(job), signature(job.verdict)].append(job)
    chains = []
    for (_, told), members in groups.items():
        for runs in _in_a_row(members):
            if len(runs) > 1:
                chains.append(_chain(told, runs))
    return sorted(chains, key=lambda each: (-each.hours, -len(each.jobs), each.jobs[0].key))


def _kinship(job: TriagedJob) -> str:
    """What is equal for runs of one job."""
    name = mask(job.name)
    if re.sub(r"<[A-Z]+>|[^A-Za-z]", "", name).lower() not in _GENERIC:
        return f"{job.user}\0{name}"
    nodes = sorted(map(host_key, job.nodes))
    return f"{job.user}\0{nodes}" if nodes else f"\0{job.key}"


def _in_a_row(members: Sequence[TriagedJob]) -> Iterable[list[TriagedJob]]:
    runs: list[TriagedJob] = []
    for job in sorted(members, key=lambda each: (each.started or 0.0, each.key)):
        if runs and not _is_next(job, runs[-1]):
            yield runs
            runs = []
        runs.append(job)
    yield runs


def _is_next(job: TriagedJob, before: TriagedJob) -> bool:
    """Whether it began when the other had ended, and did not run beside it: of a sweep all fail alike."""
    pause = (job.started or 0.0) - (before.ended or 0.0)
    overlap = min(OVERLAP, (duration(before) or 0.0) / 2)
    return -overlap <= pause <= LONGEST_PAUSE


def _chain(told: Signature, runs: Sequence[TriagedJob]) -> RetryChain:
    spent = [(job.gpus or job.verdict.job.ranks) * (duration(job) or 0.0) / HOUR for job in runs[1:]]
    return RetryChain(told, runs[-1].name, tuple(runs), sum(spent), sum(not each for each in spent))
