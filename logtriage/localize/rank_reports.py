"""What ranks report of their own times in lines that are no steps: `rank=13 forward=3.1s wait=0.1s`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from logtriage.localize.progress import StepPoint, Trace, median
from logtriage.localize.scene import Scene
from logtriage.localize.slow import Slowness, straggler, timings
from logtriage.model import Line, SourceRole

_RANK = re.compile(r"(?i)\brank[ =:_]{0,2}(\d{1,6})\b")
MOST_LINES = 20_000  # of a job, the last ones


def slow_by_reports(scene: Scene) -> Slowness | None:
    """The rank that its own reports, or the detector of its framework, show to be slow all along."""
    lines = [
        line
        for reading in scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED)
        for line in reading.lines
        if "rank" in line.text[:400].lower() or line.rank is not None
    ][-MOST_LINES:]
    return straggler(_reports(lines)) or _extremes(lines)


def _reports(lines: Iterable[Line]) -> list[Trace]:
    """The reports of each rank as a trace; their order stands for the step."""
    points: dict[int, list[StepPoint]] = defaultdict(list)
    for line in lines:
        text = line.message[:1000]
        named = _RANK.search(text) if line.rank is None else None
        rank = int(named[1]) if named else line.rank
        if rank is not None and len(timings(text)) >= 2:
            points[rank].append(StepPoint(len(points[rank]), None, line, text))
    return [Trace(rank, each[0].line.file, tuple(each)) for rank, each in points.items()]


# Megatron-LM's straggler detector: the least and the most throughput, each with its rank.
_THROUGHPUT = re.compile(
    r"MnEtpt/Rnk: ([\d.]{1,12})TF/(\d{1,6}) \| MxEtpt/Rnk: ([\d.]{1,12})TF/\d{1,6}"
)
REPORTS = 3
RATIO = 1.5  # of the best rank's throughput to the worst one's


def _extremes(lines: Iterable[Line]) -> Slowness | None:
    found: list[tuple[int, float, Line]] = []
    for line in lines:
        if (told := _THROUGHPUT.search(line.text[:4000])) is not None and float(told[1]) > 0:
            found.append((int(told[2]), float(told[3]) / float(told[1]), line))
    slow = [each for each in found[-max(REPORTS, len(found) // 2) :] if each[1] >= RATIO]
    if len(slow) < REPORTS:
        return None
    rank, count = Counter(rank for rank, _, _ in slow).most_common(1)[0]
    if count * 3 < len(slow) * 2:
        return None
    own = [(ratio, line) for each, ratio, line in slow if each == rank]
    factor = median([ratio for ratio, _ in own])
    told_by = tuple(line for _, line in own)
    summary = f"rank {rank} has {1 / factor:.0%} of the throughput of the fastest rank in {count} reports"
    return Slowness("slow.straggler", (rank,), (told_by[0], *told_by[-2:]), factor, summary, None)
