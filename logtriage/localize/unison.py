"""Whether all ranks did alike, so that none of them is the odd one: said instead of forcing a ranking.

L4 (FSE'25) ranks nodes by how far they stand out; in a fault of the whole job none does, and the first of
such a ranking would be blamed by chance.
"""

from __future__ import annotations

from itertools import pairwise

from logtriage.localize.durations import WAIT, WORK, durations
from logtriage.localize.progress import Progress, Trace, median, usual_interval
from logtriage.localize.scene import Scene
from logtriage.localize.stragglers import Alike, Straggling, compare
from logtriage.localize.topology import Topology
from logtriage.model import SourceRole

LEAST_RANKS = 3  # of two, either may be the odd one
NEAR_SECONDS = 10.0  # within which logs of ranks that stop together end, and …
NEAR_INTERVALS = 3.0  # … between steps: ranks write at different places of one
LEAST_POINTS = 4
FAR_LONGER = 3.0  # than its longest pause: a rank that made no step since fell silent
WAITING = 2.0  # so many times as long as it works, each rank waits: for somebody who is not among them


def in_unison(scene: Scene, progress: Progress, topology: Topology) -> str | None:
    """In what the ranks are alike, as a clause; None where one may stand out or too few tell."""
    shown = []
    ranks = 0
    near = max(NEAR_SECONDS, NEAR_INTERVALS * usual_interval(progress.traces))
    told = [trace for trace in progress.traces if trace.rank is not None and trace.last.line.time is not None]
    ended = max((_ended(trace) for trace in told), default=0.0)
    if any(_fell_silent(trace, ended) for trace in told):
        return None
    reached = {trace.rank: trace.last.step for trace in told if ended - _ended(trace) <= near}
    if len(reached) >= LEAST_RANKS:
        if max(reached.values()) - min(reached.values()) > 1:
            return None
        ranks = len(reached)
        shown.append(f"all came to step {max(reached.values())}")
    last = {
        reading.source.rank: max(line.time for line in reading.lines[-20:] if line.time is not None)
        for reading in scene.readings
        if reading.source.rank is not None
        and reading.source.role is SourceRole.WORKER
        and any(line.time is not None for line in reading.lines[-20:])
    }
    if len(last) >= LEAST_RANKS:
        apart = max(last.values()) - min(last.values())
        if apart > near:
            return None
        ranks = max(ranks, len(last))
        shown.append(f"their logs end within {max(1, round(apart))} s of each other")
    compared = compare(durations(scene, topology))
    if isinstance(compared, Straggling):
        return None
    if isinstance(compared, Alike):
        ranks = max(ranks, compared.ranks)
        shown.append("none takes longer than the others")
    if not shown:
        return None
    among = f"{ranks}" if ranks >= topology.size else f"{ranks} of {topology.size}"
    return f"no rank of the {among} that tell stands out: {' and '.join(shown)}"


def _ended(trace: Trace) -> float:
    return trace.last.line.time or 0.0


def _fell_silent(trace: Trace, ended: float) -> bool:
    """Whether a rank made no step at the end, for far longer than ever before: some report few of theirs."""
    times = [point.line.time for point in trace.points if point.line.time is not None]
    if len(times) < LEAST_POINTS:
        return False
    return ended - times[-1] > FAR_LONGER * max(later - earlier for earlier, later in pairwise(times))


def all_wait(scene: Scene, topology: Topology) -> bool:
    """Whether each of the ranks that tell of both waits far longer than it works."""
    told: dict[int, tuple[list[float], list[float]]] = {}
    for each in durations(scene, topology):
        waits, works = told.setdefault(each.rank, ([], []))
        if WAIT.search(each.kind[1]):
            waits.append(each.seconds)
        elif WORK.search(each.kind[1]):
            works.append(each.seconds)
    both = [each for each in told.values() if all(each)]
    return len(both) > 1 and all(median(waits) > WAITING * median(works) for waits, works in both)
