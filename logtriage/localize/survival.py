"""What its writer survived: an error after which the same rank went on is no cause of the job's end."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from logtriage.localize.asked_stacks import asked_stacks
from logtriage.localize.candidates import Candidate
from logtriage.localize.endings import endings, steps_between, taken_up
from logtriage.localize.finite_again import (
    is_of_gradients,
    spikes_left_behind,
    stepped_over,
    unfilled_norms,
)
from logtriage.localize.habits import NO_KINDS, OF_RANKS, UNDONE, Kinds, with_habits
from logtriage.localize.machine_complaints import (
    LIVED_WITH_SECONDS,
    LIVED_WITH_STEPS,
    OUTLIVED_SECONDS,
    dated_steps,
    doubted,
    lived_with,
    steps_since,
    unfelt,
)
from logtriage.localize.progress import Progress, Trace
from logtriage.localize.reports_on_top import is_reported_on_top
from logtriage.localize.scene import Scene
from logtriage.localize.taught import is_taught_as_the_end, was_finished
from logtriage.localize.tolerated import is_tolerated
from logtriage.localize.topology import Topology
from logtriage.localize.usual_course import UsualCourse
from logtriage.model import Level, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

# A rank that dies of these stops a synchronous job at once: steps of any rank long after show that it lived.
# Who does not find the others makes no steps at all.
_STOPS_ALL = ("code.", "network.connection", "network.rendezvous", "network.address_in_use", "unknown")
RECOVERED_STEPS = 2  # so many progress lines of the same writer after an error: it was survived
RESUMED_STEPS = 5  # so many after a run was resumed below it, and it was taken up
# Of these a program may write progress lines after the fault and still be ruined by it.
_OUTLIVES_PROGRESS = ("numerics.", "slow.", "gpu.thermal_power", "scheduler.")
# A notebook that is out of time stops at once; one that a model wrote in a sandbox is not the job.
_STOPS_AT_ONCE = ("notebook.time_limit", "modal.time_limit")
CALM_LINES = 20  # so many calm lines of a rank …
CALM_SECONDS = 5.0  # … so long after its exception: a process that died writes no more
SUCCESS_LINES = 12  # of the same writer after an error, among which it may say that a further try went well
AWAKE_SECONDS = 60.0  # a rank that gives up on its peers so long after an exception was not ended by it

_SUCCEEDED = regex(
    r"(?i)\b(?:retr(?:y|ies)|attempts?|tries|try|reconnect\w*|reload\w*|resum\w*|re-?read|request|download|upload"
    r"|connection|fallback)\b[^.;]{0,60}\b(?:succeeded|successful(?:ly)?|success|recovered|restored|re-?established)\b"
    r"|\b(?:succeeded|recovered|reconnected|re-?established)\b[^.;]{0,60}\b(?:retr(?:y|ies)|attempts?|tries|after)\b"
)
# What a line says of an error that is not yet the end of it, and what tells that it was not.
RETRYING = regex(r"(?i)\bretrying\b|\bwill (?:be retried|retry|try again)\b|\bretry (?:\d|in\b)")
_DONE = regex(
    r"(?i)\b(?:saved|written|completed?|finished|succeeded|success(?:ful(?:ly)?)?|uploaded|loaded)\b"
)


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What each rank did later: by file and rank, in order of time or of place."""

    words: dict[tuple[str, int | None], list[float]]  # times of calm lines
    lines: dict[tuple[str, int | None], list[Line]]
    gave_up: dict[int, Candidate]  # a rank's watchdog's last complaint, where some ranks did not complain
    programs: dict[str, frozenset[int]]  # the ranks of those that complain in each file
    steps: list[tuple[float, int]]  # of all ranks: times and numbers, in order
    course: UsualCourse


def survivors(
    candidates: Sequence[Candidate],
    scene: Scene,
    progress: Progress,
    topology: Topology,
    kinds: Kinds = NO_KINDS,
) -> list[Candidate]:
    """The candidates, with those marked `recovered` that their writers survived."""
    afterwards = Afterwards(
        _calm_words(scene, topology),
        _said_after(candidates, scene),
        _gave_up(candidates, topology),
        _ranks_by_file(candidates),
        dated_steps(progress),
        UsualCourse(scene, topology),
    )
    unfilled = unfilled_norms(candidates, progress)
    finite_again = stepped_over(candidates, scene) | spikes_left_behind(candidates, scene)
    done = next(iter(endings(scene, progress)), None)
    passed = lived_with(candidates, scene, progress, topology, kinds, done)
    passed |= {(line.file, line.number) for line in asked_stacks(scene)}
    found = [
        candidate
        if is_reported_on_top(candidate.line, scene)
        else replace(candidate, recovered=True)
        if (candidate.line.file, candidate.line.number) in passed
        or _is_of_unfilled(candidate, unfilled)
        or _ended_nothing(candidate, progress, done)
        or was_finished(candidate, done)
        or (candidate.line.file, candidate.line.number) in finite_again
        or _was_taken_up(candidate, progress, done)
        else _with_outcome(candidate, progress, afterwards)
        for candidate in candidates
    ]

    def went_on(time: float) -> bool:
        return steps_since(afterwards.steps, time + LIVED_WITH_SECONDS) >= LIVED_WITH_STEPS

    found = with_habits(found, scene, topology, kinds, went_on)
    nobodys = unfelt(found, progress)
    found = [
        replace(each, recovered=True) if (each.line.file, each.line.number) in nobodys else each
        for each in found
    ]
    doubtful = doubted(found)
    return [
        replace(each, strength=Strength.HINT)
        if (each.line.file, each.line.number) in doubtful
        else _promoted(each, found)
        for each in found
    ]


def _is_of_unfilled(candidate: Candidate, unfilled: set[str]) -> bool:
    known = candidate.rule is not None and candidate.line.file in unfilled
    return known and is_of_gradients(candidate.line.text)


def _ended_nothing(candidate: Candidate, progress: Progress, done: Line | None) -> bool:
    """Whether records beside the job tell of a cancellation that came after its end, or long before it.

    Who tidies up deletes a job that is done; what goes on for long after was not what was deleted.
    """
    if candidate.failure_type != "scheduler.cancelled" or candidate.time is None:
        return False
    if done is not None and done.file != candidate.line.file and done.time is not None:
        return candidate.time > done.time
    last = progress.last_time
    return candidate.attempt is None and last is not None and last > candidate.time + OUTLIVED_SECONDS


def _was_taken_up(candidate: Candidate, progress: Progress, done: Line | None) -> bool:
    """Whether it ended a run whose log goes on with many steps of the run that took it up.

    Whatever the steps count (bars of epochs are alike in all attempts), steps and then the end of the job in
    good order, as the scheduler saw it, are those of such a run; who was told to end may say it as well.
    """
    if not candidate.failure_type.startswith("scheduler."):
        return not candidate.failure_type.startswith(_OUTLIVES_PROGRESS) and any(
            taken_up(progress, candidate.line, trace.last.line, RESUMED_STEPS)
            for trace in progress.traces
            if trace.file == candidate.line.file
        )
    by_scheduler = {sign.line for sign in progress.completed if sign.rule.id.startswith("slurm.")}
    if (
        done is not None
        and done in by_scheduler
        and steps_between(progress, candidate.line, done) >= RECOVERED_STEPS
    ):
        return True
    return any(
        taken_up(progress, candidate.line, trace.last.line) or _begins_below(trace, candidate.line)
        for trace in progress.traces
        if trace.file == candidate.line.file
    )


def _begins_below(trace: Trace, line: Line) -> bool:
    """Whether many steps stand below a line, and above it none or later ones: those of another attempt."""
    at = bisect.bisect_right(trace.points, line.number, key=lambda point: point.line.number)
    above, below = trace.points[:at], trace.points[at:]
    return len(below) >= LIVED_WITH_STEPS and (not above or below[0].step <= above[-1].step)


def _said_after(candidates: Iterable[Candidate], scene: Scene) -> dict[tuple[str, int | None], list[Line]]:
    """The lines of the files in which some candidate ends with an exception, by file and line's own rank.

    Of those as well in which something is tried again.
    """
    wanted = {
        each.line.file
        for each in candidates
        if each.failure_type.startswith(_STOPS_ALL) or RETRYING.search(each.line.text[:2000])
    }
    lines: dict[tuple[str, int | None], list[Line]] = defaultdict(list)
    for reading in scene.readings:
        if reading.source.file in wanted:
            for line in reading.lines:
                lines[line.file, line.rank].append(line)
    return lines


def _gave_up(candidates: Sequence[Candidate], topology: Topology) -> dict[int, Candidate]:
    """The ranks that waited in vain for others, with their last complaint.

    Empty where all ranks complain, or most do not: then a complaint tells nothing of who was alive.
    """
    last: dict[int, Candidate] = {}
    for each in candidates:
        if each.failure_type == "collective.timeout" and each.rank is not None and each.time is not None:
            known = last.get(each.rank)
            if known is None or (known.time or 0.0) <= each.time:
                last[each.rank] = each
    silent = topology.size - len(last)
    return last if 0 < silent * 3 <= topology.size else {}


def _ranks_by_file(candidates: Iterable[Candidate]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for each in candidates:
        if each.rank is not None:
            found[each.line.file].add(each.rank)
    return {file: frozenset(ranks) for file, ranks in found.items()}


def _was_awake(candidate: Candidate, afterwards: Afterwards) -> bool:
    """Whether the same rank gave up on its peers long after.

    Two files in which the same ranks complain are of two programs, a trainer and the server of its rollouts,
    each of which counts its processes from 0; but run.out and run.err are of one.
    """
    if candidate.rank is None or (last := afterwards.gave_up.get(candidate.rank)) is None:
        return False
    here, there = candidate.line.file, last.line.file
    of_both = afterwards.programs[here] & afterwards.programs[there]
    if here.rsplit(".", 1)[0] != there.rsplit(".", 1)[0] and len(of_both) > 1:
        return False
    return (last.time or 0.0) > (candidate.time or 0.0) + AWAKE_SECONDS


def _promoted(candidate: Candidate, all_: Sequence[Candidate]) -> Candidate:
    """An abort is a finding of its own where its rank (or the whole job) shows nothing that led to it."""
    if candidate.failure_type != "process.native_crash" or candidate.strength is not Strength.HINT:
        return candidate
    for other in all_:
        if other.failure_type == "collective.timeout" and _may_be_of_one(other.rank, candidate.rank):
            return candidate  # its own watchdog took it down
        if other.role is not Role.CAUSE or other.recovered or other.strength is Strength.HINT:
            continue
        if other.failure_type == "collective.timeout":
            return candidate  # a watchdog's abort
        if candidate.rank is None or other.rank is None or other.rank == candidate.rank:
            return candidate
    return replace(candidate, strength=Strength.LIKELY)


def _may_be_of_one(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def _calm_words(scene: Scene, topology: Topology) -> dict[tuple[str, int | None], list[float]]:
    """When each rank wrote something calm (at INFO or DEBUG), by file and rank, in order of time."""
    words: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    for reading in scene.readings:
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED):
            for line in reading.lines:
                if line.time is not None and line.level in (Level.INFO, Level.DEBUG):
                    words[line.file, topology.rank(line)].append(line.time)
    return {key: sorted(times) for key, times in words.items()}


def _with_outcome(candidate: Candidate, progress: Progress, afterwards: Afterwards) -> Candidate:
    """Mark what the writer survived: it went on making steps, or calmly writing, afterwards."""
    kind = candidate.failure_type
    outlives = kind.startswith(_OUTLIVES_PROGRESS) and kind != "scheduler.launch"
    outlives = outlives and not (candidate.rule is not None and candidate.rule.id in _STOPS_AT_ONCE)
    if candidate.recovered or (outlives and not is_taught_as_the_end(candidate)):
        return candidate
    if candidate.source_role not in OF_RANKS:
        return candidate
    stops = candidate.failure_type.startswith(_STOPS_ALL)
    if (
        (stops and _was_outlived(candidate, progress, afterwards))
        or progress.steps_after(candidate.line) >= RECOVERED_STEPS
        or _was_retried(candidate, afterwards)
        or is_tolerated(candidate)
        or afterwards.course.went_on(candidate)
    ):
        return replace(candidate, recovered=True)
    return candidate


def _was_retried(candidate: Candidate, afterwards: Afterwards) -> bool:
    """Whether its line says that it is tried again, and what its writer says next is that all went well."""
    if not RETRYING.search(candidate.line.text[:2000]):
        return False
    lines = afterwards.lines.get((candidate.line.file, candidate.line.rank), [])
    first = bisect.bisect_right(lines, candidate.line.number, key=lambda line: line.number)
    said = [line.message[:400] for line in lines[first : first + SUCCESS_LINES]]
    done = next((at for at, text in enumerate(said) if _DONE.search(text)), None)
    return done is not None and not any(UNDONE.search(text) for text in said[: done + 1])


def _was_outlived(candidate: Candidate, progress: Progress, afterwards: Afterwards) -> bool:
    """Whether what would have stopped the job did not stop this rank, or any."""
    if _went_well(candidate, afterwards):
        return True
    if candidate.time is None:
        return False
    # The steps of a later attempt say nothing of this one.
    if candidate.attempt is None and _stepped_long_after(candidate.line, candidate.time, progress):
        return True
    if candidate.attempt is None and steps_since(afterwards.steps, candidate.time) >= LIVED_WITH_STEPS:
        # What bears no time of its own has that of its writer's last line, which can lie far before it.
        behind = dated_steps(progress, candidate.line)
        if steps_since(behind, candidate.time) >= LIVED_WITH_STEPS:
            return True
    if candidate.rank is None:
        return False
    calm = afterwards.words.get((candidate.line.file, candidate.rank), [])
    if len(calm) - bisect.bisect_right(calm, candidate.time + CALM_SECONDS) >= CALM_LINES:
        return True
    return _was_awake(candidate, afterwards)


def _stepped_long_after(line: Line, time: float, progress: Progress) -> bool:
    """Whether some rank made a step long after. What stands above in the same file was written before."""
    ends = [trace.last.line for trace in progress.traces]
    return any(
        end.time is not None
        and end.time > time + OUTLIVED_SECONDS
        and (end.file != line.file or end.number > line.number)
        for end in ends
    )


def _went_well(candidate: Candidate, afterwards: Afterwards) -> bool:
    """Whether the writer says soon after that a further try succeeded."""
    lines = afterwards.lines.get((candidate.line.file, candidate.line.rank), [])
    first = bisect.bisect_right(lines, candidate.line.number, key=lambda line: line.number)
    return any(_SUCCEEDED.search(line.message[:400]) for line in lines[first : first + SUCCESS_LINES])
