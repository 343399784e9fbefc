"""Durations that bear no name which tells of one: two numbers that together make up a step, on every rank.

In a synchronous job all ranks take as long for a step, and what a rank does not work it waits. So two columns
of one form of lines that add up to the same on all ranks, and to as much as a step takes, are work and
waiting, whatever they are called. Which is which the slow rank tells: it works while its peers wait
(`stragglers`; C4, HPCA'25, reads the same of the waits in a ring).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations

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
_ROW = regex(r"^\D{0,24}?(\d{1,6})(?!\d|\.\d)")
_SPEAKS = regex(r"[A-Za-z]")
MOST_COLUMNS = 6
LEAST_RANKS = 8
MOST_LINES = 200_000
ALIKE = 0.1  # share by which the sums of the ranks may differ from their median, for most of them
MOST = 0.8
STEP_LEAST, STEP_MOST = 0.5, 1.25  # of the usual time between steps, that both make up together
UNITS = (1.0, 1e-3, 1e-6)
ROWS = 0.9  # of the lines of a form that number the ranks, each of which comes after the one before


@dataclass(frozen=True, slots=True)
class Parts:
    """The lines of a form, and which of their fractional numbers are work and waiting, in which unit."""

    form: str
    work: int
    wait: int
    unit: float
    has_rows: bool  # the first number of each line is the rank that it is about


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
    found: list[tuple[int, Straggling, Parts]] = []  # with the number of lines
    for form, rows in forms.items():
        if len(rows) < LEAST_RANKS * LEAST_VALUES:
            continue
        has_rows = _number_ranks([line for line, _ in rows], topology)
        by_rank = _by_rank(rows, topology, has_rows=has_rows)
        if len(by_rank) < LEAST_RANKS:
            continue
        columns = min(len(values) for _, values in rows)
        for work, wait in permutations(range(columns), 2):
            sums = [median([values[work] + values[wait] for _, values in own]) for own in by_rank.values()]
            unit = _unit(sums, interval)
            if unit is None:
                continue
            parts = Parts(form, work, wait, unit, has_rows)
            slow = compare(_durations(by_rank, parts))
            if isinstance(slow, Straggling):
                found.append((len(rows), replace(slow, field=""), parts))
    _, slowest, told = max(found, key=lambda each: each[0], default=(0, None, None))
    return (slowest, told) if slowest is not None and told is not None else None


def _seconds_a_step(progress: Progress) -> float | None:
    """How long a step took in the end, by most of the traces that tell."""
    told = []
    for trace in progress.traces:
        points = [point for point in trace.points if point.line.time is not None]
        late = points[-max(LEAST_VALUES, len(points) // 3) :]
        if len(late) >= LEAST_VALUES:
            first, last = late[0], late[-1]
            steps, seconds = last.step - first.step, (last.line.time or 0.0) - (first.line.time or 0.0)
            told += [seconds / steps] if steps > 0 and seconds > 0 else []
    return median(told) if told else None


def durations_of(scene: Scene, topology: Topology, parts: Parts) -> Iterator[Duration]:
    """The durations that lines of this form tell, of further lines."""
    rows = [(line, values) for line, form, values in _valued(scene) if form == parts.form]
    return _durations(_by_rank(rows, topology, has_rows=parts.has_rows), parts)


def _durations(by_rank: dict[int, list[tuple[Line, tuple[float, ...]]]], parts: Parts) -> Iterator[Duration]:
    for rank, rows in by_rank.items():
        for line, values in rows:
            if max(parts.work, parts.wait) < len(values):
                yield Duration(rank, (parts.form, "step"), values[parts.work] * parts.unit, line)
                yield Duration(rank, (parts.form, "wait"), values[parts.wait] * parts.unit, line)


def _by_rank(
    rows: Sequence[tuple[Line, tuple[float, ...]]], topology: Topology, *, has_rows: bool
) -> dict[int, list[tuple[Line, tuple[float, ...]]]]:
    """The rows of each rank; of those with few of them none where others have more."""
    by_rank: dict[int, list[tuple[Line, tuple[float, ...]]]] = defaultdict(list)
    for line, values in rows:
        numbered = _ROW.match(_without_label(line)) if has_rows else None
        rank = int(numbered[1]) if numbered is not None else topology.rank(line)
        if rank is not None:
            by_rank[rank].append((line, values))
    return by_rank


def _number_ranks(lines: Sequence[Line], topology: Topology) -> bool:
    """Whether these lines are rows of tables, one a rank: their first number counts up through all ranks."""
    numbers = [int(row[1]) for line in lines if (row := _ROW.match(_without_label(line))) is not None]
    if len(numbers) < len(lines) or set(numbers) != set(range(max(numbers) + 1)):
        return False
    if max(numbers) + 1 < max(LEAST_RANKS, topology.size):
        return False
    following = sum(later == earlier + 1 for earlier, later in pairwise(numbers))
    return following >= ROWS * (len(numbers) - 1 - numbers.count(0))


_LABEL = regex(r"^\[[^\[\]]{1,40}\] ")


def _without_label(line: Line) -> str:
    return _LABEL.sub("", line.message[:120])


def _unit(sums: Sequence[float], interval: float) -> float | None:
    """In which unit sums of most ranks are as long as a step; None where they are not, or differ."""
    middle = median(list(sums))
    if middle <= 0 or sum(abs(each - middle) <= ALIKE * middle for each in sums) < MOST * len(sums):
        return None
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
                yield line, " ".join(without_digits(_LABEL.sub("", text)).split())[:120], values
