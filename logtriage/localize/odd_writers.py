"""Who wrote more, or less, of the same than all others, and since when: counts of lines over time.

L4 (FSE'25) counts the events of each node and looks for the odd one by an isolation forest, since in a
synchronous job healthy nodes log alike. Here each rank's counts of each kind of lines (a shape of
`mining/kinds`) are compared over time. Who logs otherwise by his part in the job, as rank 0 or the last
stage of a pipeline, does so from the start; so only who was as all others until some time, and then no more,
is odd. The distance from all others is robust (median and median absolute deviation, of counts whose variance
was made equal by F. J. Anscombe's root, Biometrika 35, 1948), so that it serves few writers as well as
hundreds; where too many differ, none is odd.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from logtriage.intake.reading import Reading
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import SHAPE_LEAST
from logtriage.mining.slices import counts_of
from logtriage.mining.summary import Key, KeyCount, Summary
from logtriage.model import Source, SourceRole

LEAST = 8  # of fewer ranks, or hosts, none is odd
FEW = 8  # of so many writers one may be odd, and of fewer one
WINDOWS = 16  # of equal time, in which the counts are compared
AS_OTHERS = 3.0  # deviations within which a writer is as all others …
ODD = 6.0  # … and beyond which it is not
TIMES = 3  # and wrote so many times as much of it as any other, or so many times less
LEAST_LINES = 6  # of a kind, that one wrote more than all others
MOST_COMPARED = 40_000  # kinds, each of each writer: about a second
_QUANTILES = 2 * 1.15  # deviations between the quantiles of a normal distribution at 1 and 7 eighths


@dataclass(frozen=True, slots=True)
class OddWriter:
    """A rank, or a host by all of its ranks, that parted from the others in these kinds of lines.

    `distance` is in deviations, over all kinds.
    """

    host: str | None
    rank: int | None
    kinds: tuple[Key, ...]  # the most telling first
    since: float
    distance: float
    is_more: bool  # than the others, of the most telling kind


@dataclass(frozen=True, slots=True)
class _Writer:
    """A file: of a rank, or of a host, with offsets and times of lines in it."""

    rank: int | None
    host: str | None
    summary: Summary
    times: Sequence[tuple[int, float]]


_Name = tuple[str | None, int | None]  # a host, or a rank


def odd_writers(
    readings: Sequence[Reading],
    summaries: Mapping[str, Summary],
    topology: Topology,
    until: float | None = None,
) -> tuple[OddWriter, ...]:
    """The hosts and ranks that parted from all others before `until`, the farthest first; mostly none.

    `summaries` are by file.
    """
    writers = [
        _Writer(rank, topology.machine(host), summaries[source.file], times)
        for reading in readings
        for source in (reading.source,)
        if source.role in (SourceRole.WORKER, SourceRole.MERGED) and source.file in summaries
        for times in (_dated(reading),)
        if len(times) > 1
        for rank in (topology.rank_of_file.get(source.file, source.rank),)
        for host in (topology.host_of_rank.get(-1 if rank is None else rank) or _host(source, topology),)
    ]
    if not writers:
        return ()
    begin = min(each.times[0][1] for each in writers)
    end = max(each.times[-1][1] for each in writers)
    end = end if until is None else min(end, until)
    if end <= begin:
        return ()
    import numpy as np

    edges = np.linspace(begin, end, WINDOWS + 1)
    found: dict[_Name, list[tuple[float, Key, int, bool]]] = defaultdict(list)
    of_ranks: list[tuple[_Writer, _Name]] = [
        (each, (None, each.rank)) for each in writers if each.rank is not None
    ]
    of_hosts: list[tuple[_Writer, _Name]] = [
        (each, (each.host, None)) for each in writers if each.host is not None
    ]
    if any(each.host is None for each, _ in of_ranks):
        of_hosts = []  # of a host of which some ranks are missing fewer lines tell nothing
    for named in (of_ranks, of_hosts):
        names = sorted({name for _, name in named}, key=str)
        if len(names) < LEAST:
            continue
        row_of = {name: row for row, name in enumerate(names)}
        offsets = [_offsets(each.times, edges, each.summary.bytes) for each, _ in named]
        for key in _of_most([(name, each.summary) for each, name in named]):
            table = np.zeros((len(names), WINDOWS))
            for (each, name), ends in zip(named, offsets, strict=True):
                if (count := each.summary.keys.get(key)) is not None:
                    table[row_of[name]] += _by_window(count, each.summary.shift, ends)
            for place, window, distance in _parted(table):
                found[names[place]].append((abs(distance), key, window, distance > 0))
    odd = [
        OddWriter(
            *whose,
            kinds=tuple(key for _, key, *_ in sorted(told, reverse=True)),
            since=float(edges[min(window for _, _, window, _ in told)]),
            distance=sum(distance**2 for distance, *_ in told) ** 0.5,
            is_more=max(told)[3],
        )
        for whose, told in found.items()
    ]
    return tuple(sorted(odd, key=lambda each: -each.distance))


def _host(source: Source, topology: Topology) -> str | None:
    return topology.host_of_file.get(source.file) or source.host


def _of_most(writers: Sequence[tuple[_Name, Summary]]) -> list[Key]:
    """The kinds that more than half of the writers wrote, the commonest first, as many as are compared.

    What others wrote alone may be somebody's part in the job.
    """
    wrote: dict[Key, set[_Name]] = defaultdict(set)
    times: Counter[Key] = Counter()
    for name, summary in writers:
        for key, count in summary.keys.items():
            if len(key) >= SHAPE_LEAST:
                wrote[key].add(name)
                times[key] += count.count
    names = len({name for name, _ in writers})
    most = [key for key, _ in times.most_common() if len(wrote[key]) * 2 > names]
    return most[: max(1, MOST_COMPARED // len(writers))]


def _dated(reading: Reading) -> list[tuple[int, float]]:
    """Offsets and times of lines, both rising."""
    found: list[tuple[int, float]] = []
    for line in reading.lines:
        if line.time is not None and (not found or line.time >= found[-1][1]):
            found.append((line.offset, line.time))
    return found


def _offsets(times: Sequence[tuple[int, float]], edges: Any, size: int) -> Any:
    """Where in a file each of these times lies; between two dated lines in proportion."""
    import numpy as np

    offsets, seconds = (np.array(column, dtype=float) for column in zip(*times, strict=True))
    found = np.interp(edges, seconds, offsets, right=size)
    found[0] = 0  # what is undated at the start was written then
    return found


def _by_window(count: KeyCount, shift: int, edges: Any) -> Any:
    """The lines of a kind by windows, between whose offsets the lines of a slice lie evenly."""
    import numpy as np

    if count.count <= 2:  # told exactly
        places = [count.first[1], count.last[1]][: count.count]
        return np.histogram(places, edges)[0]
    by_slice = np.array(counts_of(count.slices), dtype=float)
    bounds = np.arange(len(by_slice) + 1, dtype=float) * (1 << shift)
    bounds = np.clip(bounds, count.first[1], count.last[1] + 1)
    up_to = np.interp(edges, bounds, np.concatenate(([0.0], np.cumsum(by_slice))))
    return np.diff(up_to)


def _parted(table: Any) -> list[tuple[int, int, float]]:
    """Of the counts of one kind, by writers and windows: who parted, from which window on, and how far."""
    import numpy as np

    after = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]  # from a window on to the end
    before = table.sum(axis=1, keepdims=True) - after
    windows = np.arange(table.shape[1])
    lately = windows + (len(windows) - windows) // 2  # from the middle of what is left
    ordered = np.sort(after, axis=0)
    found = []
    for place, own in enumerate(after):
        # The most and the least of the others.
        most = np.where(own == ordered[-1], ordered[-2], ordered[-1])
        least = np.where(own == ordered[0], ordered[1], ordered[0])
        more = (own >= TIMES * most) & (own - most >= LEAST_LINES)
        fewer = (own * TIMES <= least) & (least - own >= LEAST_LINES)
        more &= ((own >= TIMES * most) & (own > 0))[lately]  # and went on so
        fewer &= ((own * TIMES <= least) & (least > 0))[lately]
        if not (more | fewer).any():
            continue
        far, near = (_distances(each[place], np.delete(each, place, axis=0)) for each in (after, before))
        # As many as it wrote then it would have written before, had it not changed.
        as_later = own * windows / (len(windows) - windows)
        changed = np.abs(_even(as_later) - _even(before[place])) >= ODD
        parts = (np.abs(far) >= ODD) & (np.abs(near) < AS_OTHERS) & changed & (more | fewer)
        if parts.any():
            window = int(np.argmax(np.where(parts, np.abs(far), 0)))
            found.append((place, window, float(far[window])))
    return found if len(found) <= max(1, len(table) // FEW) else []


def _distances(own: Any, others: Any) -> Any:
    """By column, how many deviations a count is above the median of the others."""
    import numpy as np

    even = _even(others)
    middle = np.median(even, axis=0)
    # Counts of what comes in bursts spread far to one side, where the median deviation sees nothing.
    few, many = np.quantile(even, (1 / FEW, 1 - 1 / FEW), axis=0)
    spread = np.maximum(1.4826 * np.median(np.abs(even - middle), axis=0), (many - few) / _QUANTILES)
    return (_even(own) - middle) / np.maximum(spread, 1.0)


def _even(counts: Any) -> Any:
    """Counts made such that by chance each deviates by 1."""
    import numpy as np

    return 2 * np.sqrt(counts + 3 / 8)
