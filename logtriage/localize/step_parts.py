"""Durations that bear no name which tells of one: two numbers that together make up a step, on every rank.

In a synchronous job all ranks take as long for a step, and what a rank does not work it waits. So two columns
of one form of lines that add up to the same on all ranks, and to as much as a step takes, are work and
waiting, whatever they are called. Which is which the slow rank tells: it works while its peers wait
(`stragglers`; C4, HPCA'25, reads the same of the waits in a ring).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from typing import NamedTuple

from logtriage.localize.durations import Duration
from logtriage.localize.progress import Progress, median
from logtriage.localize.scene import Scene
from logtriage.localize.stragglers import LEAST_VALUES, Straggling, compare
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_VALUE = regex(r"(?:^|[\s=:(\[|,\"'/<>+])(\d{1,9}\.\d{1,9})(?:ms|us|s|sec)?(?=$|[\s,;:)\]|\"'/}<>])")
_CLOCK = regex(r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?")
_WHOLE = regex(
    r"(?<![\w.-])(?:[A-Za-z_]{1,16}[=#:])?(\d{1,6})(?![\w.-])|(?<=[A-Za-z\[(#])(\d{1,6})(?![\w.-])"
)
_SPEAKS = regex(r"[A-Za-z]")
MOST_COLUMNS = 6
LEAST_RANKS = 8
MOST_LINES = 200_000
ALIKE = 0.1  # share by which the sums of the ranks may differ from their median, for most of them
MOST = 0.8
LONG = 1.5  # times the usual step
STEP_LEAST, STEP_MOST = 0.5, 1.25  # of the usual time between steps, that both make up together
UNITS = (1.0, 1e-3, 1e-6)
ROWS = 0.9  # of the lines of a form that number the ranks come after the one before, and so many of the ranks
MOST_PLACES = 4  # among the first numbers of a line


_Row = tuple[Line, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Parts:
    """The lines of a form, and which of their fractional numbers are work and waiting, in which unit."""

    form: str
    work: int
    wait: int
    unit: float
    rank_at: int | None  # which whole number of each line is the rank that it is about, None where none is


class _Told(NamedTuple):
    """What one form of lines tells: how many they are, and how far apart in seconds."""

    lines: int
    spacing: float
    slow: Straggling
    parts: Parts


def straggling(scene: Scene, progress: Progress, topology: Topology) -> tuple[Straggling, Parts] | None:
    """The ranks that hold the others up by such parts of their steps."""
    interval = _seconds_a_step(progress)
    if interval is None:
        return None
    forms: dict[str, list[tuple[Line, tuple[float, ...]]]] = defaultdict(list)
    for count, (line, form, values) in enumerate(_valued(scene)):
        if count >= MOST_LINES:
            break
        forms[form].append((line, values))
    found: list[_Told] = []
    for form, rows in forms.items():
        if len(rows) < LEAST_RANKS * LEAST_VALUES:
            continue
        rank_at = _rank_place([line for line, _ in rows], topology)
        by_rank = _by_rank(rows, topology, rank_at)
        if len(by_rank) < LEAST_RANKS:
            continue
        columns = min(len(values) for _, values in rows)
        for work, wait in permutations(range(columns), 2):
            told: Mapping[int, Sequence[_Row]] = by_rank
            if not _are_alike(sums := _late_sums(told, work, wait)):
                told = _without_long_steps(told, work, wait, interval)
                if len(told) < LEAST_RANKS or not _are_alike(sums := _late_sums(told, work, wait)):
                    continue
            unit = _unit(sums, interval)
            if unit is None:
                continue
            parts = Parts(form, work, wait, unit, rank_at)
            slow = compare(_durations(told, parts))
            if isinstance(slow, Straggling):
                found.append(_Told(len(rows), _spacing(told), replace(slow, field=""), parts))
    most = max(found, key=lambda each: each.lines, default=None)
    if most is None:
        return None
    # Of those that tell of the same ranks the finest: a table may be printed every few steps only.
    alike = [each for each in found if each.slow.ranks == most.slow.ranks]
    finest = min(alike, key=lambda each: each.spacing)
    return finest.slow, finest.parts


def _spacing(by_rank: Mapping[int, Sequence[_Row]]) -> float:
    """Seconds between two lines of a rank, as most are apart."""
    times = ([line.time for line, _ in rows if line.time is not None] for rows in by_rank.values())
    apart = [later - earlier for own in times for earlier, later in pairwise(own) if later > earlier]
    return median(apart) if apart else float("inf")


def _seconds_a_step(progress: Progress) -> float | None:
    """How long a step took in the end, by most of the traces that tell."""
    told = []
    for trace in progress.traces:
        points = [point for point in trace.points if point.line.time is not None]
        late = points[-max(LEAST_VALUES, len(points) // 3) :]
        if len(late) >= LEAST_VALUES:
            paces = [
                ((later.line.time or 0.0) - (earlier.line.time or 0.0)) / (later.step - earlier.step)
                for earlier, later in pairwise(late)
                if later.step > earlier.step
            ]
            pace = median(paces) if paces else 0.0  # a bar that ends at another count is one of them
            told += [pace] if pace > 0 else []
    return median(told) if told else None


def durations_of(scene: Scene, topology: Topology, parts: Parts) -> Iterator[Duration]:
    """The durations that lines of this form tell, of further lines."""
    rows = [(line, values) for line, form, values in _valued(scene) if form == parts.form]
    return _durations(_by_rank(rows, topology, parts.rank_at), parts)


def _durations(by_rank: Mapping[int, Sequence[_Row]], parts: Parts) -> Iterator[Duration]:
    for rank, rows in by_rank.items():
        for line, values in rows:
            if max(parts.work, parts.wait) < len(values):
                yield Duration(rank, (parts.form, "step"), values[parts.work] * parts.unit, line)
                yield Duration(rank, (parts.form, "wait"), values[parts.wait] * parts.unit, line)


def _by_rank(
    rows: Sequence[tuple[Line, tuple[float, ...]]], topology: Topology, rank_at: int | None
) -> dict[int, list[tuple[Line, tuple[float, ...]]]]:
    """The rows of each rank, in their order."""
    by_rank: dict[int, list[tuple[Line, tuple[float, ...]]]] = defaultdict(list)
    for line, values in rows:
        numbers = _whole_numbers(line) if rank_at is not None else []
        told = numbers[rank_at] if rank_at is not None and rank_at < len(numbers) else None
        rank = told if told is not None else topology.rank(line)
        if rank is not None:
            by_rank[rank].append((line, values))
    return by_rank


def _rank_place(lines: Sequence[Line], topology: Topology) -> int | None:
    """Which number of these lines is the rank that they are about, where they do not tell of their writer.

    It takes each value below the job's size: in rows of a table one after the other, in the lines of many
    writers each in one file alone.
    """
    size = max(LEAST_RANKS, topology.size)
    numbered = [_whole_numbers(line) for line in lines]
    for place in range(min(MOST_PLACES, min(map(len, numbered)))):
        numbers = [each[place] for each in numbered]
        if len(set(numbers)) < ROWS * size or max(numbers) + 1 != len(set(numbers)):
            continue
        following = sum(later == earlier + 1 for earlier, later in pairwise(numbers))
        if following >= ROWS * (len(numbers) - 1 - numbers.count(0)):
            return place
        files: dict[int, set[str]] = defaultdict(set)
        for number, line in zip(numbers, lines, strict=True):
            files[number].add(line.file)
        if all(len(each) == 1 for each in files.values()) and topology.rank(lines[0]) is None:
            return place
    return None


def _whole_numbers(line: Line) -> list[int]:
    text = _CLOCK.sub("", _LABEL.sub("", line.message[:160]))
    return [int(found[1] or found[2]) for found in _WHOLE.finditer(text)]


_LABEL = regex(r"^\[[^\[\]]{1,40}\] ")


def _late_sums(by_rank: Mapping[int, Sequence[_Row]], work: int, wait: int) -> list[float]:
    """What both columns make up on each rank in the end."""
    late = (own[-max(LEAST_VALUES, len(own) // 3) :] for own in by_rank.values())
    return [median([values[work] + values[wait] for _, values in own]) for own in late]


def _are_alike(sums: Sequence[float]) -> bool:
    middle = median(list(sums))
    return middle > 0 and sum(abs(each - middle) <= ALIKE * middle for each in sums) >= MOST * len(sums)


def _without_long_steps(
    by_rank: Mapping[int, Sequence[_Row]], work: int, wait: int, interval: float
) -> Mapping[int, Sequence[_Row]]:
    """The rows without those of steps that were long for all: of some ranks more lines of these are read."""
    at_once: dict[int, list[float]] = defaultdict(list)
    for own in by_rank.values():
        for line, values in own:
            if line.time is not None:
                at_once[int(line.time // interval)].append(values[work] + values[wait])
    steps = [median(sums) for sums in at_once.values() if len(sums) >= LEAST_RANKS and _are_alike(sums)]
    if len(steps) < LEAST_VALUES:
        return {}
    most = LONG * median(steps)
    usual = {
        rank: [row for row in own if row[1][work] + row[1][wait] <= most] for rank, own in by_rank.items()
    }
    return {rank: own for rank, own in usual.items() if own}


def _unit(sums: Sequence[float], interval: float) -> float | None:
    """In which unit sums of most ranks are as long as a step; None where they are not."""
    middle = median(list(sums))
    return next((unit for unit in UNITS if STEP_LEAST <= middle * unit / interval <= STEP_MOST), None)


def _valued(scene: Scene) -> Iterator[tuple[Line, str, tuple[float, ...]]]:
    """The job's lines with two fractional numbers at least: their form, and those numbers."""
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            is_record = line.text.lstrip().startswith("{")
            text = line.text if is_record else line.message
            if text.count(".") < 2:
                continue
            text = _CLOCK.sub("", text[:400])
            values = tuple(float(found[1]) for found in _VALUE.finditer(text))[:MOST_COLUMNS]
            if len(values) > 1 and _SPEAKS.search(text):
                form = " ".join(without_digits(_LABEL.sub("", text)).split())
                yield line, form.replace(" .", ".")[:120], values  # shorter numbers stand behind spaces
