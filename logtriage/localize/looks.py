"""What somebody saw of machines before or after the job: reports of their state, lists of nodes.

A report has one time, at which it was made, and shows much that the job lived with. So it tells who, where
the job's own words know a consequence only; a cause that the job states stands above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

_BY_TOOLS = (SourceRole.HARDWARE, SourceRole.METRICS)
_LISTS = ("state.", "slurm.reason.")  # rules that read what controllers say of all their nodes
LATELY_SECONDS = 900.0  # peers wait for so long before they give up
DAY = 86_400.0  # what is seen later than this says nothing of the job
_CLOCK = regex(r"\d:\d\d")

# What ranks show when a machine fails under them, or under their peers. All else is a cause of their own.
_FOLLOWS = (
    "cuda.illegal_memory_access", "cuda.launch_failure", "cuda.library", "collective.", "process.", "gpu.",
    "network.infiniband", "network.rendezvous", "host.node_lost", "hang.", "slow.", "code.subprocess",
    "scheduler.cancelled", "unknown",
)  # fmt: skip

_FAULTS = ("gpu.", "network.infiniband", "host.node_lost")


def as_seen(
    candidates: Sequence[Candidate], scene: Scene, progress: Progress, topology: Topology
) -> list[Candidate]:
    """The candidates; looks of others' machines and of jobs that ended well are marked `recovered`.

    Nobody knows when a state began that was seen when all was over: it is not younger than the job's end.
    """
    if not any(map(_is_look, candidates)):
        return list(candidates)
    times = scene.job_times()
    end = max(times) - LATELY_SECONDS if times else None
    machines = _machines(topology)
    others = [each for each in candidates if not _is_look(each)]
    is_known = any(_is_own_cause(each) or _is_event(each, times) for each in others)
    is_calm = not any(map(_complains, others))
    is_well = is_calm and bool(progress.completed)
    has_run = bool(progress.traces)
    found = []
    for each in candidates:
        if not _is_look(each):
            found.append(each)
            continue
        host = topology.machine(each.host) or each.host
        if is_well or (machines and host is not None and _short(host) not in machines):
            found.append(replace(each, recovered=True))
            continue
        if has_run and is_calm and each.strength is not Strength.DEFINITE and _is_soon(each, times):
            found.append(replace(each, recovered=True))  # the job may well run on
            continue
        seen = each
        if (
            end is not None
            and each.time is not None
            and end <= each.time <= end + DAY
            and not _is_dated(each)
        ):
            seen = replace(seen, time=None)
        # No job lives with a device that cannot be used, whatever it then raises.
        is_lived_with = has_run or each.failure_type != "gpu.unavailable"
        found.append(replace(seen, strength=Strength.HINT) if is_known and is_lived_with else seen)
    return found


def _is_look(candidate: Candidate) -> bool:
    if candidate.rule is not None and candidate.rule.id.startswith(_LISTS):
        return True
    return candidate.source_role in _BY_TOOLS and not _is_dated(candidate)


def _is_dated(candidate: Candidate) -> bool:
    """Whether the line itself says when: an event, or a row of many."""
    return candidate.time is not None and _CLOCK.search(candidate.line.text[:120]) is not None


def _is_own_cause(candidate: Candidate) -> bool:
    return _complains(candidate) and not candidate.failure_type.startswith(_FOLLOWS)


def _is_soon(candidate: Candidate, times: Sequence[float]) -> bool:
    """Whether a machine was looked at while the job wrote, or soon behind its last line.

    A look without a time was taken when somebody asked what was wrong.
    """
    return candidate.time is not None and (not times or candidate.time <= max(times) + LATELY_SECONDS)


def _is_event(candidate: Candidate, times: Sequence[float]) -> bool:
    """Whether a machine's own log tells of its fault while the job ran: it says when, as no look does."""
    if candidate.source_role is not SourceRole.KERNEL or candidate.time is None or not times:
        return False
    is_fault = candidate.failure_type.startswith(_FAULTS) and candidate.role is Role.CAUSE
    return is_fault and _complains(candidate) and min(times) <= candidate.time <= max(times) + LATELY_SECONDS


def _complains(candidate: Candidate) -> bool:
    is_sure = candidate.role is Role.SYMPTOM or candidate.strength is not Strength.HINT
    return is_sure and not candidate.recovered


def _machines(topology: Topology) -> set[str]:
    """The machines of the job, where it is known on which all of its ranks ran."""
    if not topology.host_of_rank or len(topology.host_of_rank) < topology.size:
        return set()
    return {_short(topology.machine(host) or host) for host in topology.host_of_rank.values()}


def _short(host: str) -> str:
    return host if host.replace(".", "").isdigit() else host.split(".")[0]
