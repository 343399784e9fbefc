"""A closer look at one file, where the first reading left a gap in which something began.

Of large files head, tail and the places that rules named are read. When a rank became slow, or which step was
made at some time, stands between: rounds of evenly spread windows find it, each between the two windows of
the last that differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from logtriage.intake.reading import Extent, Reading, read_windows
from logtriage.intake.streams import StreamFault, pieces
from logtriage.localize.counters import with_counted
from logtriage.localize.durations import Duration, durations
from logtriage.localize.findings import Findings
from logtriage.localize.progress import Trace, gather, median, usual_interval
from logtriage.localize.scene import build_scene
from logtriage.localize.slow import Slowness, of_ranks
from logtriage.localize.spoken_labels import with_spoken_ranks
from logtriage.localize.step_parts import durations_of
from logtriage.localize.stragglers import Straggling, as_slow, earliest, onset
from logtriage.model import Line, Source
from logtriage.rulebank.matcher import Matcher

WINDOWS = 20  # in one round
WINDOW_BYTES = 6 << 10  # enough for lines of some ranks that write into one file
MOST_BYTES = 256 << 20  # of a file, decompressed: line ends are counted up to the windows
ROUNDS = 3
MOST_FILES = 3  # of slow ranks that are read so

LEAST_REPORTS = 3  # that follow each other tell how far apart reports are
NEAR_INTERVALS = 3.0  # between steps: a narrower gap needs no closer look


def with_onset(
    findings: Findings,
    time: float | None,
    matcher: Matcher,
    root: Path,
    sources: Sequence[Source],
    extents: Sequence[Extent],
    *,
    is_slow: bool,
) -> Findings:
    """The findings with what was read of the gap in which the failure began: at `time`, on the job's axis.

    Where the job `is_slow`, it began where a straggler's times rose, which is sought first; then the steps
    about that time are.
    """
    slow = findings.slowness if is_slow else None
    if slow is not None and (line := _rise(slow, findings, root, sources, extents)) is not None:
        risen = replace(slow, since=line)
        findings = replace(findings, find_slowness=lambda: risen)
        time = findings.time(line)
    if time is None:
        return findings
    return _with_steps_at(findings, time, matcher, root, sources, extents)


def _with_steps_at(
    findings: Findings,
    time: float,
    matcher: Matcher,
    root: Path,
    sources: Sequence[Source],
    extents: Sequence[Extent],
) -> Findings:
    """With the steps about a time, read from the file that reports most of them."""
    told = findings.progress.with_one_count().traces
    stamps = [point.line.time for trace in told for point in trace.points if point.line.time is not None]
    before = max((at for at in stamps if at <= time), default=None)
    after = min((at for at in stamps if at > time), default=None)
    if after is None or (before is not None and after - before <= NEAR_INTERVALS * _report_interval(told)):
        return findings
    progress = findings.progress
    file = min(progress.traces, key=_sparseness).file
    begin, end = 0, 1 << 62
    for _ in range(ROUNDS):
        reading = read_between(file, begin, end, root, sources, extents, _labels(findings, file))
        if reading is None:
            break
        scene = build_scene([reading], matcher)
        read = with_counted(gather(scene), scene, findings.counters)
        progress = progress.joined(read)
        dated = sorted(
            (point.line.time, point.line.offset)
            for trace in read.with_one_count().traces
            for point in trace.points
            if point.line.time is not None
        )
        begin = max((offset for at, offset in dated if at <= time), default=begin)
        end = min((offset for at, offset in dated if at > time), default=end)
    return replace(findings, progress=progress)


def _report_interval(told: Sequence[Trace]) -> float:
    """The seconds between two reports of steps that follow each other, at least one.

    Where windows were read, most of those that stand side by side have others between them.
    """
    usual = max(usual_interval(told), 1.0)
    points = [
        (one.step, one.line.time, other.step, other.line.time)
        for trace in told
        for one, other in pairwise(trace.points)
        if other.step > one.step and one.line.time is not None and other.line.time is not None
    ]
    least = min((later - earlier for earlier, _, later, _ in points), default=0)
    closest = [end - begin for step, begin, later, end in points if later - step == least and end > begin]
    return max(min(usual, median(closest)), 1.0) if len(closest) >= LEAST_REPORTS else usual


def _sparseness(trace: Trace) -> tuple[float, int, int]:
    """How many steps lie between two that it reports; where that is not plain, the fewer the sparser.

    Then the less of the job it spans the sparser.
    """
    steps = [point.step for point in trace.points]
    gaps = [later - earlier for earlier, later in pairwise(steps) if later > earlier]
    return (median(gaps) if len(gaps) > 2 else math.inf, -len(steps), steps[0] - steps[-1])


def _rise(
    slow: Slowness,
    findings: Findings,
    root: Path,
    sources: Sequence[Source],
    extents: Sequence[Extent],
) -> Line | None:
    """The line from which on the first of the slow ranks was slow; None where it was all along."""
    found = slow.straggling
    if found is None:
        return slow.since
    of_file: dict[str, list[int]] = {}
    for rank, first in found.first:
        of_file.setdefault(first.file, []).append(rank)
    risen = [slow.since] if slow.since is not None else []
    for file, ranks in list(of_file.items())[:MOST_FILES]:
        begin, end = 0, 1 << 62
        for _ in range(ROUNDS):
            reading = read_between(file, begin, end, root, sources, extents, _labels(findings, file))
            if reading is None:
                break
            told = _told(slow, found, findings, reading)
            places = []
            for rank in ranks:
                own = [each for each in told if each.rank == rank]
                at = onset(own, found.bar)
                if at is not None:
                    before = [each.line.offset for each in own if each.line.offset < at.offset]
                    places.append((at, before[-1]))
            if not places:
                break
            risen = [each for each in risen if each.file != file] + [at for at, _ in places]
            begin, end = min(start for _, start in places), max(at.offset for at, _ in places) + 1
    return earliest(risen) or slow.since


def with_companions(
    findings: Findings, root: Path, sources: Sequence[Source], extents: Sequence[Extent]
) -> Findings:
    """The findings, whose slowness also names who is as slow among those that write into a slow rank's file.

    Where many ranks write into one file, too little of it is read first to know the times of each.
    """

    def find_slowness() -> Slowness | None:
        return _accompanied(findings.slowness, findings, root, sources, extents)

    return replace(findings, find_slowness=cache(find_slowness))


def _accompanied(
    slow: Slowness | None,
    findings: Findings,
    root: Path,
    sources: Sequence[Source],
    extents: Sequence[Extent],
) -> Slowness | None:
    found = slow.straggling if slow is not None else None
    if slow is None or found is None:
        return slow
    in_part = {reading.source.file: reading for reading in findings.scene.readings if not reading.whole}
    more: dict[int, Line] = {}
    for file in list(dict.fromkeys(first.file for _, first in found.first))[:MOST_FILES]:
        if file not in in_part or in_part[file].source.rank is not None:
            continue
        reading = read_between(file, 0, 1 << 62, root, sources, extents, _labels(findings, file))
        told = _told(slow, found, findings, reading) if reading is not None else []
        for rank in {each.rank for each in told}.difference(found.ranks):
            own = [each for each in told if each.rank == rank]
            if as_slow(own, found.bar):
                more[rank] = onset(own, found.bar) or own[0].line
    if not more:
        return slow
    found = replace(
        found, ranks=tuple(sorted({*found.ranks, *more})), first=(*found.first, *sorted(more.items()))
    )
    return replace(of_ranks(found, findings.topology), parts=slow.parts)


def _told(slow: Slowness, found: Straggling, findings: Findings, reading: Reading) -> list[Duration]:
    """The durations of the kind that showed who is slow, of further lines."""
    scene = replace(findings.scene, readings=[reading])
    read = (
        durations(scene, findings.topology)
        if slow.parts is None
        else durations_of(scene, findings.topology, slow.parts)
    )
    return [each for each in read if each.kind == found.kind]


def _labels(findings: Findings, file: str) -> Mapping[str, int]:
    """The ranks of the labels of a file, as its first reading told them."""
    readings = (each for each in findings.scene.readings if each.source.file == file)
    return next((each.labelled for each in readings), {})


def read_between(
    file: str,
    begin: int,
    end: int,
    root: Path,
    sources: Sequence[Source],
    extents: Sequence[Extent],
    labelled: Mapping[str, int],
) -> Reading | None:
    """Windows of a file, evenly spread between two offsets; None where the file is too large for that."""
    source, extent = next(
        (each for each in zip(sources, extents, strict=True) if each[0].file == file), (None, None)
    )
    if source is None or extent is None or extent.bytes > MOST_BYTES:
        return None
    end = min(end, extent.bytes)
    offsets = sorted({begin + (end - begin) * index // WINDOWS for index in range(WINDOWS)})
    try:
        places = tuple(_numbered(root, source, offsets))
        read = read_windows(root, source, replace(extent, places=places), WINDOW_BYTES)
        return with_spoken_ranks(read, labelled)
    except StreamFault:
        return None


def _numbered(root: Path, source: Source, offsets: Sequence[int]) -> list[tuple[int, int]]:
    """The offsets with the numbers of the lines in which they stand."""
    found = []
    wanted = list(offsets)
    for piece in pieces(root, source):
        while wanted and wanted[0] < piece.offset + len(piece.data):
            offset = wanted.pop(0)
            found.append((piece.first_line + piece.data[: offset - piece.offset].count(b"\n"), offset))
        if not wanted:
            break
    return found
