"""What a framework's own detector of stragglers reports: the slowest rank and the fastest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from logtriage.localize.progress import median
from logtriage.localize.scene import Scene
from logtriage.localize.slow import Slowness
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

MOST_LINES = 20_000  # of a job, the last ones


def slow_by_reports(scene: Scene) -> Slowness | None:
    """The rank that the detector of its framework shows to be slow all along."""
    lines = [
        line
        for reading in scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED)
        for line in reading.lines
        if "MnEtpt/Rnk" in line.text[:4000]
    ][-MOST_LINES:]
    return _extremes(lines)


# Megatron-LM's straggler detector: the least and the most throughput, each with its rank.
_THROUGHPUT = regex(r"MnEtpt/Rnk: ([\d.]{1,12})TF/(\d{1,6}) \| MxEtpt/Rnk: ([\d.]{1,12})TF/\d{1,6}")
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
