"""In which stage and iteration the failure lies, and what it cost: work since the last checkpoint.

FlashRecovery (2025) asks of a past incident how long the job stood idle; L4 (FSE'25) names stage and
iteration.
"""

from __future__ import annotations

import bisect
from itertools import pairwise

from logtriage.diagnose.decision import Decision
from logtriage.localize.announced import last_written
from logtriage.localize.candidates import Candidate
from logtriage.localize.findings import Findings
from logtriage.localize.introduced import INTRODUCED_LINES
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Sign
from logtriage.localize.stages import Course, Moment, gather_course, moment
from logtriage.model import Line, Raised, SourceRole
from logtriage.regex import regex
from logtriage.report.document import Lost, StageOut, iso_time


def stage_and_loss(findings: Findings, decision: Decision, ranks: int) -> tuple[StageOut | None, Lost | None]:
    """Both are None of a job that went well; `ranks` is the job's size, 0 where it is not known."""
    line, time = onset(findings, decision)
    if line is None or decision.outcome in ("completed", "running"):
        return None, None
    course = gather_course(findings.scene, findings.progress.with_one_count(), findings.offsets)
    candidate = _candidate(findings, line)
    rank = findings.topology.rank(line)
    if rank is None and len(decision.culprits.ranks) == 1:
        rank = decision.culprits.ranks[0]  # in a file of several ranks without labels, words tell whose it is
    at = moment(
        course,
        line,
        time,
        rank=rank,
        raised=_raised(candidate),
        introduction=_introduction(findings, line),
        failure_type=decision.failure_type,
    )
    stage = StageOut(
        name=at.stage.value,
        iteration=at.iteration,
        why=at.why,
        file=at.line.file if at.line else None,
        line=at.line.number if at.line else None,
    )
    if decision.outcome == "slow":  # it goes on: nothing is lost but time
        return stage, None
    return stage, _lost(findings, course, at, time, ranks)


_CLOCK = regex(r"(?:\b|[T_])\d{1,2}:\d\d:\d\d|\[ *\d+\.\d{3,6}\]|^\W{0,8}\d{8,}")


def onset(findings: Findings, decision: Decision) -> tuple[Line | None, float | None]:
    """The line by which the failure begins, and when that was, on the job's axis.

    Of a cause it is the most telling one: weak earlier signs are not where it began. An undated line only
    knows the time of the one before it, so another cited line may tell the time.
    """
    slow = findings.slowness if decision.failure_type.startswith("slow.") else None
    if slow is not None and slow.failure_type == decision.failure_type and slow.since is not None:
        return slow.since, findings.time(slow.since)
    cited = [each.line for each in decision.evidence]
    if not cited:
        root = decision.root
        return (root.line, root.time) if root is not None else (None, None)
    for each in cited:
        if _CLOCK.search(each.text[:120]) and each.time is not None:
            return cited[0], _stood_still(findings, decision, _time(findings, each))
    known, last = _time(findings, cited[0]), findings.progress.last_time
    role = next(each.source.role for each in findings.scene.readings if each.source.file == cited[0].file)
    of_job = role in (SourceRole.WORKER, SourceRole.MERGED)
    of_job = of_job and not decision.failure_type.startswith("scheduler.")
    if known is not None and last is not None and not of_job:
        known = max(known, last)  # what a controller says without a date of the end comes after the last step
    return cited[0], known


def _stood_still(findings: Findings, decision: Decision, time: float | None) -> float | None:
    """When a lost machine fell silent: what it complained of long before was a warning."""
    hosts = decision.culprits.hosts
    if decision.failure_type != "host.node_lost" or len(hosts) != 1 or time is None:
        return time
    written = last_written(hosts[0], findings.scene, findings.topology)
    return time if written is None else max(time, written)


def _time(findings: Findings, line: Line) -> float | None:
    """A candidate knows better than its line: undated last words come after the last step."""
    known = _candidate(findings, line)
    return known.time if known is not None else findings.time(line)


def _candidate(findings: Findings, line: Line) -> Candidate | None:
    return next((each for each in findings.candidates if each.line == line), None)


def _introduction(findings: Findings, line: Line) -> Line | None:
    """The line right above the traceback that `line` is of, by the same writer."""
    known = _candidate(findings, line)
    if known is None or known.record is None:
        return None
    first = known.record.lines[0]
    lines = findings.scene.lines(line.file)
    at = bisect.bisect_left(lines, first.number, key=lambda each: each.number)
    above = [each for each in lines[max(0, at - INTRODUCED_LINES) : at] if each.rank == line.rank]
    return above[-1] if above else None


def _raised(candidate: Candidate | None) -> Raised | None:
    if candidate is None or candidate.record is None or not candidate.record.raised:
        return None
    raised = candidate.record.raised
    return next((each for each in raised if each.at == candidate.line), raised[0])


def _lost(findings: Findings, course: Course, at: Moment, began: float | None, ranks: int) -> Lost | None:
    times = findings.scene.job_times()
    progress = course.progress
    last = progress.last_step
    if not times or last is None:
        return None
    ended = max(times)
    saved = _last_good_checkpoint(findings, began)
    since = saved.line.time if saved is not None and saved.line.time is not None else min(times)
    kept = _step_of(saved, course) if saved is not None else _step_before(progress)
    seconds = max(0.0, ended - since)
    stepped = findings.progress.last_time
    idle = max(0.0, ended - stepped) if stepped is not None else None
    return Lost(
        since="checkpoint" if saved is not None else "start",
        since_time=iso_time(since),
        last_good_iteration=at.iteration,
        iterations=max(0, last.step - kept) if kept is not None else None,
        seconds=round(seconds, 1),
        gpu_hours=round(seconds * ranks / 3600, 2) if ranks else None,
        idle_seconds=round(idle, 1) if idle is not None else None,
        idle_gpu_hours=round(idle * ranks / 3600, 2) if idle is not None and ranks else None,
    )


def _last_good_checkpoint(findings: Findings, began: float | None) -> Sign | None:
    """The last one that was saved before the failure began: what is saved of a NaN is NaN."""
    return next(
        (
            each
            for each in reversed(findings.progress.checkpoints)
            if began is None or each.line.time is None or each.line.time <= began
        ),
        None,
    )


def _step_of(saved: Sign, course: Course) -> int | None:
    said = saved.hit.capture("step")
    if said is not None and said.isdigit():
        return int(said)
    return moment(course, saved.line, saved.line.time).iteration


FIRST_REPORTS = 50  # of each trace, which tell how many steps lie between two reports


def _step_before(progress: Progress) -> int | None:
    """The step at which the run began: one report before the first one, as reports follow each other.

    Of a single report nobody knows what stands behind it, unless it is of the first step.
    """
    firsts = [trace.points[0].step for trace in progress.traces]
    apart = [
        later.step - earlier.step
        for trace in progress.traces
        for earlier, later in pairwise(trace.points[:FIRST_REPORTS])
        if later.step > earlier.step
    ]
    if not firsts or (not apart and min(firsts) > 1):
        return None
    return min(firsts) - min(apart, default=1)
