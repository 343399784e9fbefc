"""One axis of time for all files: events that two of them must have seen give their clocks' offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from logtriage.intake.clocks import Sighting, estimate_offsets
from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Progress
from logtriage.model import ClockOffset, SourceRole
from logtriage.rulebank.rule import Role, Strength

STEPS_COMPARED = 40  # of each file: the first and the last half of these
LEAST_ZONE_SECONDS = 3600.0
CLUSTER_SECONDS = 60.0  # a machine's complaints within this time are one event


def clock_offsets(
    progress: Progress, candidates: Sequence[Candidate], explains: Mapping[str, frozenset[str]]
) -> dict[str, ClockOffset]:
    """Offsets by file against the file that reported most steps; files that nothing tells of are absent.

    Ranks of a synchronous job end a step together, so equal step numbers are one event. A fault in a
    machine's own log and the first error on the job's side that it can bring about are one event too.
    """
    sightings = [*_steps(progress), *_faults(candidates, explains)]
    count: dict[str, int] = {}
    for trace in progress.traces:
        count[trace.file] = count.get(trace.file, 0) + len(trace.points)
    for each in sightings:
        count.setdefault(each.file, 0)
    if not count:
        return {}
    speaking = {each.line.file for each in candidates if each.source_role not in _MACHINE}
    reference = max(sorted(count), key=lambda file: (file in speaking or count[file] > 0, count[file]))
    machines = {each.line.file for each in candidates if each.source_role in _MACHINE}
    return {
        offset.file: offset
        for offset in estimate_offsets(sightings, reference)
        # One event tells a zone of hours from a way of minutes between fault and effect, no less.
        if offset.file not in machines or abs(offset.seconds) >= LEAST_ZONE_SECONDS
    }


_MACHINE = (SourceRole.KERNEL, SourceRole.HARDWARE)


def aligned(candidates: Sequence[Candidate], offsets: Mapping[str, ClockOffset]) -> list[Candidate]:
    """The candidates with their times on the job's axis."""
    return [
        replace(each, time=each.time + offsets[each.line.file].seconds)
        if each.time is not None and each.line.file in offsets
        else each
        for each in candidates
    ]


def _steps(progress: Progress) -> list[Sighting]:
    found = []
    half = STEPS_COMPARED // 2
    for trace in progress.traces:
        seen: dict[int, float] = {}
        for point in trace.points:
            if point.line.time is not None:
                seen.setdefault(point.step, point.line.time)
        if len(set(seen.values())) * 2 < len(seen):
            continue  # times that several steps share are inherited, not their own
        chosen = [*sorted(seen)[:half], *sorted(seen)[-half:]]
        start = trace.points[0].line.attempt  # a restarted job counts the same steps again
        found += [
            Sighting(trace.file, seen[step], f"start {start} step {step}") for step in dict.fromkeys(chosen)
        ]
    return found


def _faults(candidates: Sequence[Candidate], explains: Mapping[str, frozenset[str]]) -> list[Sighting]:
    found: list[Sighting] = []
    causes = [each for each in candidates if each.role is Role.CAUSE and each.time is not None]
    by_file: dict[str, list[Candidate]] = {}
    for each in causes:
        if each.source_role is SourceRole.KERNEL and each.strength is not Strength.HINT:
            by_file.setdefault(each.line.file, []).append(each)
    for file, events in by_file.items():
        times = sorted(each.time for each in events if each.time is not None)
        if times[-1] - times[0] > CLUSTER_SECONDS:
            continue  # several events: which of them the job felt is not plain
        effects = {effect for each in events for effect in explains.get(each.failure_type, ())}
        effects |= {each.failure_type for each in events}
        felt = [
            each
            for each in causes
            if each.source_role not in _MACHINE and each.failure_type in effects and not each.recovered
        ]
        if felt:
            first = min(felt, key=lambda each: each.time or 0.0)
            key = f"fault in {file}"
            found += [Sighting(file, times[0], key), Sighting(first.line.file, first.time or 0.0, key)]
    return found
