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

    The next run goes on where the earlier one had come to, and where both are dated, it began after it. Files
    that were written at the same time are parts of one run: of its nodes.
    """
    whole_jobs = {
        source.file
        for source in scene.sources
        if source.role is SourceRole.MERGED and source.rank is None and source.host is None
    }
    traces = {trace.file: trace for trace in progress.traces if trace.file in whole_jobs}
    spans = {
        reading.source.file: (min(times), max(times))
        for reading in scene.readings
        if reading.source.file in traces
        and (times := [line.time for line in reading.lines if line.time is not None])
    }
    alike: dict[str, list[str]] = defaultdict(list)
    for file in traces:
        alike[_NUMBER.sub("#", file)].append(file)
    past = set()
    for files in alike.values():
        files.sort(key=lambda file: [int(number) for number in _NUMBER.findall(file)])
        for earlier, later in pairwise(files):
            if earlier in spans and later in spans and _overlap(spans[earlier], spans[later]):
                continue
            if _goes_on(traces[earlier], traces[later]):
                past.add(earlier)
    return frozenset(past)


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two files have more than half of the shorter one's time in common."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    return common > 0 and common * 2 > min(one[1] - one[0], other[1] - other[0])


def _goes_on(earlier: Trace, later: Trace) -> bool:
    first, reached = later.points[0], earlier.last
    if not earlier.points[0].step < first.step <= reached.step + 1 or later.last.step <= first.step:
        return False
    began, ended = first.line.time, reached.line.time
    return began is None or ended is None or began > ended
