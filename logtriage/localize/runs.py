"""Logs of runs that a later run of the same job took over from: `job_17_0.out` beside `job_17_1.out`."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from logtriage.localize.progress import Progress, Trace
from logtriage.localize.scene import Scene
from logtriage.model import SourceRole
from logtriage.regex import regex

_NUMBER = regex(r"\d+")


def superseded(scene: Scene, progress: Progress) -> frozenset[str]:
    """Files of earlier runs: named alike but for a number, and resumed by the next one.

    The next run goes on where the earlier one had come to, or says that it resumes and comes to no step;
    where both are dated, it began after it. Files that were written at the same time are parts of one run: of
    its nodes.
    """
    whole_jobs = {
        source.file
        for source in scene.sources
        if source.role is SourceRole.MERGED and source.rank is None and source.host is None
    }
    traces = {trace.file: trace for trace in progress.traces if trace.file in whole_jobs}
    resuming = _resuming(scene, whole_jobs - set(traces))
    spans = {
        reading.source.file: (min(times), max(times))
        for reading in scene.readings
        if reading.source.file in {*traces, *resuming}
        and (times := [line.time for line in reading.lines if line.time is not None])
    }
    alike: dict[str, list[str]] = defaultdict(list)
    for file in (*traces, *resuming):
        alike[_NUMBER.sub("#", file)].append(file)
    past = set()
    for files in alike.values():
        files.sort(key=lambda file: [int(number) for number in _NUMBER.findall(file)])
        for earlier, later in pairwise(files):
            if earlier in spans and later in spans and _overlap(spans[earlier], spans[later]):
                continue
            if earlier in traces and later in traces:
                if _goes_on(traces[earlier], traces[later]):
                    past.add(earlier)
            elif earlier in traces and earlier in spans and spans[earlier][1] < spans[later][0]:
                past.add(earlier)
    return frozenset(past)


_RESUMES = regex(
    r"(?i)\b(?:resum(?:e|es|ed|ing)|restor(?:e|es|ed|ing)|continu(?:e|es|ed|ing)|load(?:s|ed|ing)?)\b"
    r"[^\n]{0,60}\b(?:checkpoint|ckpt|snapshot|step|iteration|state)|\bauto[-_]?resume\b"
    r"|\bresum(?:ed|es|ing) (?:training |the run |run )?(?:from|at)\b"
)


def _resuming(scene: Scene, files: set[str]) -> set[str]:
    """Of files without a step those that are dated and say that their run takes up an earlier one."""
    return {
        reading.source.file
        for reading in scene.readings
        if reading.source.file in files
        and any(line.time is not None for line in reading.lines)
        and any(_RESUMES.search(line.text[:600]) for line in reading.lines[:RESUMED_WITHIN])
    }


RESUMED_WITHIN = 200  # lines from the beginning


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two files have more than half of the shorter one's time in common."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    return common > 0 and common * 2 > min(one[1] - one[0], other[1] - other[0])


def _goes_on(earlier: Trace, later: Trace) -> bool:
    first, reached = later.points[0], earlier.last
    # Who reports every hundredth step tells of the next one only.
    stride = max(1, min((two.step - one.step for one, two in pairwise(earlier.points)), default=1))
    if not earlier.points[0].step < first.step <= reached.step + stride or later.last.step <= first.step:
        return False
    began, ended = first.line.time, reached.line.time
    return began is None or ended is None or began > ended
