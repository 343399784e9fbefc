"""Slow without an error: one rank that all others wait for, or an input pipeline that cannot keep up.

Speeds are noisy on shared machines and in a synchronous job every rank's step takes as long as the
slowest, so absolute step times prove nothing. What proves a straggler is the contrast between ranks: its
own work takes longer while its peers spend the same time waiting. What proves a starved input pipeline is
the contrast within a step: waiting for data against everything else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from logtriage.localize.progress import Progress, StepPoint, Trace, median
from logtriage.model import Line

_TIMING = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_+/.-]{0,38}?)(?:\((?P<named_unit>ms|s|sec|seconds)\))?\s*[:=]?\s*"
    r"(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>ms|msec|milliseconds|s|sec|secs|seconds)?\b"
)
_DATA = re.compile(r"data|load|fetch|input|reader|batch.?gen", re.IGNORECASE)
# Durations of a whole iteration, waiting for data included.
_WHOLE = re.compile(r"^(?:time|(?:iter|step|batch)_time|(?:avg_)?batch_cost)$")
_WAIT = re.compile(r"wait|comm|all.?reduce|sync|barrier|allgather|reduce", re.IGNORECASE)
_WORK = re.compile(r"comp|forward|backward|fwd|bwd|step|iter|train|optim|model", re.IGNORECASE)

SLOWER = 1.8  # a straggler's own work against the median of its peers
DATA_SHARE = 0.3  # of a step spent waiting for data: healthy jobs hide loading behind computing
MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class Slowness:
    """`failure_type` is slow.straggler or slow.data; `lines` show it, the first most plainly."""

    failure_type: str
    ranks: tuple[int, ...]
    lines: tuple[Line, ...]
    factor: float
    summary: str
    since_step: int | None


# Programs print `data 0.2 compute 610.9 comm 281.2` without a unit: such names mean durations anyhow.
_DURATION = re.compile(
    r"^(?:time|(?:iter|step|batch)_(?:time|cost)|(?:avg_)?(?:batch|reader)_cost"
    r"|data|compute|comp|comm|wait|load|forward|backward|fwd|bwd|optim\w*|train)(?:[_ ]?time)?$"
)


_SUFFIX = re.compile(r"_(ms|msec|s|sec|secs|seconds)$")


def timings(text: str) -> dict[str, float]:
    """The named durations of one line, in seconds (or in the line's own unit where it names none)."""
    found: dict[str, float] = {}
    for match in _TIMING.finditer(text[-2_000:]):
        unit = match["unit"] or match["named_unit"]
        name = match["name"].strip(" -._").lower()
        if unit is None and (suffix := _SUFFIX.search(name)):
            name, unit = name[: suffix.start()], suffix[1]
        if unit is None:
            if not _DURATION.match(name):
                continue
            unit = "s"
        value = float(match["value"]) * (0.001 if unit.startswith("m") else 1.0)
        found.setdefault(name, value)
    return found


def straggler(traces: Sequence[Trace]) -> Slowness | None:
    """The rank (or few ranks) whose own work takes much longer than its peers', with the peers waiting."""
    series = {
        trace.rank: _series(trace.points)
        for trace in traces
        if trace.rank is not None and len(trace.points) >= 6
    }
    if len(series) < 2:
        return None
    names = ({name for _, values in points for name in values} for points in series.values())
    fields = set.intersection(*names)
    work = [name for name in fields if not _WAIT.search(name) and (_WORK.search(name) or _DATA.search(name))]
    waiting = [name for name in fields if _WAIT.search(name)]
    best: Slowness | None = None
    for name in sorted(work):
        last = {rank: _late(points, name) for rank, points in series.items()}
        if any(value is None for value in last.values()):
            continue
        known = {rank: value for rank, value in last.items() if value is not None}
        middle = median(list(known.values()))
        slow = sorted(
            rank for rank, value in known.items() if value > SLOWER * middle and value - middle > 0.005
        )
        if not slow or len(slow) * 3 > len(known):
            continue
        if waiting and not _peers_wait(series, waiting, slow):
            continue
        if not waiting and len(known) < 3:
            continue
        factor = max(known[rank] for rank in slow) / max(middle, 1e-9)
        if best is None or factor > best.factor:
            onset = _onset(series[slow[0]], name)
            lines = _telling(traces, slow[0], name, onset)
            best = Slowness(
                "slow.straggler",
                tuple(slow),
                lines,
                factor,
                f"rank {', '.join(map(str, slow))} takes {factor:.1f} times as long for '{name}' "
                "as its peers",
                onset,
            )
    return best


def starved(traces: Sequence[Trace], others: Iterable[Line] = ()) -> Slowness | None:
    """A job that waits for data longer than it computes, in most of the steps that it reports."""
    shares: list[tuple[float, Line]] = []
    points = [point.line for trace in traces for point in trace.points[:MOST_POINTS]]
    for line in [*points, *others]:
        values = timings(line.message)
        data = [
            value
            for name, value in values.items()
            if _DATA.search(name) and not (_WORK.search(name) or _WHOLE.match(name))
        ]
        whole = [value for name, value in values.items() if _WHOLE.match(name)]
        work = [
            value
            for name, value in values.items()
            if _WORK.search(name) and not _DATA.search(name) and not _WAIT.search(name)
        ]
        if {"iter_time", "forward_time", "train_time"} <= values.keys():  # ESPnet's wait for the next batch
            data, whole = [values["iter_time"]], [values["train_time"]]
        if data and whole and max(data) <= max(whole) and max(whole) > 0:
            shares.append((max(data) / max(whole), line))
        elif data and work and max(work) > 0:
            shares.append((max(data) / (max(data) + max(work)), line))
    if len(shares) < 4:
        return None
    typical = median([share for share, _ in shares])
    if typical < DATA_SHARE:
        return None
    shares.sort(key=lambda item: -item[0])
    lines = tuple(line for _, line in shares[:3])
    told = f"steps spend {typical:.0%} of their time waiting for data"
    return Slowness("slow.data", (), lines, typical, told, None)


def _series(points: Sequence[StepPoint]) -> list[tuple[StepPoint, dict[str, float]]]:
    return [(point, timings(point.line.message)) for point in points[-MOST_POINTS:]]


def _late(points: Sequence[tuple[StepPoint, dict[str, float]]], name: str) -> float | None:
    values = [found[name] for _, found in points if name in found]
    late = values[-max(3, len(values) // 3) :]
    return median(late) if len(values) >= 4 else None


def _peers_wait(
    series: Mapping[int, list[tuple[StepPoint, dict[str, float]]]],
    waiting: Sequence[str],
    slow: Sequence[int],
) -> bool:
    for name in waiting:
        values = {rank: _late(points, name) for rank, points in series.items()}
        peers = [value for rank, value in values.items() if rank not in slow and value is not None]
        own = [value for rank, value in values.items() if rank in slow and value is not None]
        if peers and own and median(peers) > 1.2 * median(own):
            return True
    return False


def _onset(points: Sequence[tuple[StepPoint, dict[str, float]]], name: str) -> int | None:
    """The first step from which the field stays above the middle of its own early and late value."""
    values = [(point.step, found[name]) for point, found in points if name in found]
    if len(values) < 6:
        return None
    early = median([value for _, value in values[: len(values) // 4 or 1]])
    late = median([value for _, value in values[-(len(values) // 4 or 1) :]])
    if late < 1.3 * early:
        return None
    bar = (early + late) / 2
    run = None
    for step, value in values:
        run = (step if run is None else run) if value > bar else None
    return run


def _telling(traces: Sequence[Trace], rank: int, name: str, onset: int | None) -> tuple[Line, ...]:
    own = [point for trace in traces if trace.rank == rank for point in trace.points]
    after = [point for point in own if onset is None or point.step >= onset]
    ranked = sorted(after, key=lambda point: -timings(point.line.message).get(name, 0.0))
    first = [point for point in after[:1] if onset is not None]
    return tuple(dict.fromkeys(point.line for point in [*ranked[:1], *first, *ranked[1:2]]))


def slowness(progress: Progress) -> Slowness | None:
    traces = [trace for trace in progress.traces if len(trace.points) >= 4]
    by_rank: dict[int | None, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_rank[trace.rank].append(trace)
    return straggler(traces) or starved(traces)
