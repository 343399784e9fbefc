"""One host that talks over plain sockets where the others have a faster network and wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.localize.durations import DATA, WAIT, WORK, timings
from logtriage.localize.progress import Trace, median
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

_CHOSEN = regex(r"NCCL INFO (?:Using network|Assigned NET plugin) (?P<network>[\w-]{2,40})\b")
LEAST_HOSTS = 3  # of which one stands out
LEAST_STEPS = 4
WAITING_SHARE = 0.5  # of a step: where the network is good, most of the exchange hides behind computing
MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class LoneTransport:
    """The host, the line in which it chose, what the others use, and how much of a step is waiting."""

    host: str
    line: Line
    usual: str
    share: float
    step: Line


def lone_transport(traces: Sequence[Trace], scene: Scene, topology: Topology) -> LoneTransport | None:
    chosen: dict[str, tuple[str, Line]] = {}
    for reading in scene.readings:
        for line in reading.lines if reading.source.role in JOB_ROLES else ():
            if " NCCL INFO " in line.text and (told := _CHOSEN.search(line.text[:400])) is not None:
                host = topology.host(line, topology.rank(line))
                if host is not None:
                    chosen.setdefault(host, (told["network"], line))
    lone = [host for host, (network, _) in chosen.items() if network == "Socket"]
    others = Counter(network for network, _ in chosen.values() if network != "Socket")
    if len(chosen) < LEAST_HOSTS or len(lone) != 1 or len(others) != 1:
        return None
    shares = sorted(
        (_waiting(point.line), point.line.number, point.line)
        for trace in traces
        for point in trace.points[:MOST_POINTS]
    )
    share = median([each for each, _, _ in shares]) if len(shares) >= LEAST_STEPS else 0.0
    if share < WAITING_SHARE:
        return None
    return LoneTransport(lone[0], chosen[lone[0]][1], others.most_common(1)[0][0], share, shares[-1][2])


def _waiting(line: Line) -> float:
    """How much of the longest time that a step's line tells is waiting for peers; 0 where it does not say."""
    values = timings(line.message)
    waits = [
        value
        for name, value in values.items()
        if WAIT.search(name) and not DATA.search(name) and ("wait" in name or not WORK.search(name))
    ]
    longest = max(values.values(), default=0.0)
    return max(waits, default=0.0) / longest if longest > 0 else 0.0
