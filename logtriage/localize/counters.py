"""Steps of programs whose words no rule knows: numbers that rise evenly in lines of one form.

What counts a job's steps is told by its course, whatever it is called: a whole number that goes up by about
the same from line to line, through most of the job, and for all ranks alike. Clocks go up as well, and so
do loops at start-up, samples and bytes: of what rises through most of the job what rises by the least counts
the steps. L4 (FSE'25) cuts iterations by fixed markers; here the marker is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.localize.progress import Progress, StepPoint, Trace, median
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# A number on its own, or behind a word: not part of an address, a path, a hexadecimal value or a time.
_NUMBER = regex(r"(?:^|[\s=:#(\[|,\"'/@])(\d{1,12})(?=$|[\s,;:)\]|\"'/}])(?!:\d)")
# What these words number is told one after the other, however evenly: no step.
_MEMBER = regex(
    r"(?i)(?<![a-z])(?:local|global|node|world|sub|child)?[ _-]?(?:rank|process|proc|pid|thread|node|host|gpu"
    r"|device|worker|replica|port|attempt|retry|try)s?(?:[ _-]?(?:id|no|number|index))?[\s=:#\[(\"']{0,3}$"
    r"|(?<![A-Za-z])(?:In|Out) ?\[$"  # a notebook's cells
    r"|~\.~{3,7}:$"  # the port of an address (`10.8` and `0.2`, blanked): clients take one after the other
)
_TOTAL = regex(r" {0,6}(?:/|of) {0,6}(\d{1,12})(?![\d.:])")
_CLOCK = regex(
    r"\d{1,4}[-/]\d\d[-/]\d{1,4}|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?|\d+\.\d+(?:e[-+]?\d+)?|0x[0-9a-f]+|\d+e[-+]\d+"
)
_DIGITS = regex(r"\d+")
MOST_TEXT = 600
MEMBER_WIDTH = 30  # of what stands before a number that tells what it numbers
MOST_NUMBERS = 12  # of a line that may count
LEAST_RISES = 5
EVEN = 0.8  # of the rises are at most …
WIDER = 4  # … so many times the usual one
MOST_FALLS = 2  # back by far: of a restart; what enumerates falls back again and again
SMALL_FALLS = 0.25  # of all changes: of ranks that write into one file
LONG = 0.3  # of its file that a counter must span …
AS_LONG = 0.5  # … and of the longest one
MOST_LINES = 200_000
FEW_THINGS = 200
MOST_RATE = 1000.0  # a second: bytes, samples and addresses rise faster, steps do not
CLOCK_LIKE = 0.02  # a number that rises as the seconds do within so much is a clock


@dataclass(frozen=True, slots=True)
class Counter:
    """The `place`-th number of the lines of a form."""

    form: str
    place: int


@dataclass(slots=True)
class _Course:
    """What one number of a form was in one writer's lines, in their order."""

    values: list[int]
    lines: list[Line]
    total: int | None = None  # that stands behind the last of them


def step_counters(scene: Scene) -> frozenset[Counter]:
    """The numbers that count the job's steps; empty where none plainly does."""
    courses: dict[Counter, dict[tuple[str, int | None], _Course]] = defaultdict(dict)
    for count, (line, form, numbers) in enumerate(_numbered(scene)):
        if count >= MOST_LINES:
            break
        for place, (value, total) in enumerate(numbers):
            course = courses[Counter(form, place)].setdefault((line.file, line.rank), _Course([], []))
            course.values.append(value)
            course.lines.append(line)
            course.total = total
    rising = {counter: found for counter, of in courses.items() if (found := _rising(list(of.values())))}
    if not rising:
        return frozenset()
    ends = {reading.source.file: reading.lines[-1].offset for reading in scene.readings if reading.lines}
    spans = {counter: max(_span(each, ends) for each in found) for counter, found in rising.items()}
    longest = max(spans.values())
    long = [counter for counter, span in spans.items() if span >= max(LONG, AS_LONG * longest)]
    if not long:
        return frozenset()
    chosen = min(
        long, key=lambda each: (_usual_rise(rising[each]), -len(rising[each]), -spans[each], each.place)
    )
    low, high = _range(rising[chosen])
    slack = max(2, (high - low) // 20)
    return frozenset(
        counter
        for counter, found in rising.items()
        for begin, end in (_range(found),)
        if low - slack <= begin and end <= high + slack and end >= high - slack
    )


def with_counted(progress: Progress, scene: Scene, counters: frozenset[Counter]) -> Progress:
    """The progress with the steps that these numbers count."""
    return progress.with_traces(_traces(scene, counters)) if counters else progress


def _traces(scene: Scene, counters: frozenset[Counter]) -> list[Trace]:
    """By writer, the first line of each step: others may tell more of the same."""
    by_writer: dict[tuple[str, int | None], list[StepPoint]] = defaultdict(list)
    for line, form, numbers in _numbered(scene):
        for place, (value, total) in enumerate(numbers):
            if Counter(form, place) in counters:
                points = by_writer[line.file, line.rank]
                if not points or abs(value - points[-1].step) > 1 or value > points[-1].step:
                    points.append(StepPoint(value, total, line, line.text))
                break
    return [Trace(rank, file, tuple(points)) for (file, rank), points in by_writer.items()]


def _numbered(scene: Scene) -> Iterator[tuple[Line, str, list[tuple[int, int | None]]]]:
    """The job's lines that hold whole numbers: their form, and each number with the total behind it.

    What a rule knows as an error, or as how a process ended, counts processes, ports or retries.
    """
    told_else: dict[str, set[int]] = defaultdict(set)
    for sign in (*scene.causes, *scene.symptoms):
        told_else[sign.line.file].add(sign.line.number)
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        of_tracebacks = {
            line.number
            for record in scene.records[reading.source.file]
            if record.raised
            for line in record.lines
        } | told_else.get(reading.source.file, set())
        for line in reading.lines:
            text = line.message[:MOST_TEXT] or line.text[:MOST_TEXT]
            if line.number in of_tracebacks or " NCCL " in text:
                continue
            text = _CLOCK.sub(lambda found: "~" * len(found[0]), text)
            numbers: list[tuple[int, int | None]] = []
            last = -1
            for found in _NUMBER.finditer(text):
                if found.start(1) <= last or len(numbers) >= MOST_NUMBERS:
                    continue
                if _MEMBER.search(text, max(0, found.start(1) - MEMBER_WIDTH), found.start(1)):
                    continue
                total = _TOTAL.match(text, found.end(1))
                last = total.end() if total is not None else found.end(1)
                numbers.append((int(found[1]), int(total[1]) if total is not None else None))
            if numbers:
                # Columns are padded to a width: numbers of more digits have fewer blanks beside them.
                yield line, "".join(_DIGITS.sub("#", text.replace("~", "")).split())[:160], numbers


def _rising(courses: Sequence[_Course]) -> list[_Course]:
    """The writers' courses of a number that rises evenly in most of them; none otherwise."""
    told = [each for each in courses if len(set(each.values)) > LEAST_RISES and not _is_short_loop(each)]
    rising = [each for each in told if _rises_evenly(each)]
    return rising if rising and len(rising) * 5 >= len(told) * 4 else []


def _is_short_loop(course: _Course) -> bool:
    """Whether it counted up to all of a few things: files that were loaded, layers that were built."""
    return course.total is not None and course.values[-1] >= course.total - 1 and course.total <= FEW_THINGS


def _rises_evenly(course: _Course) -> bool:
    changes = [
        (later - earlier, _seconds(before, after))
        for (earlier, later), (before, after) in zip(
            pairwise(course.values), pairwise(course.lines), strict=True
        )
        if later != earlier
    ]
    rises = [(rise, seconds) for rise, seconds in changes if rise > 0]
    if len(rises) < LEAST_RISES or len(changes) - len(rises) > SMALL_FALLS * len(changes):
        return False
    usual = median([rise for rise, _ in rises])
    if sum(change < -WIDER * usual for change, _ in changes) > MOST_FALLS or _is_clock(course):
        return False
    told = list(_since_first_said(course, WIDER * usual))
    dated = [rise / seconds for rise, seconds in told if seconds]
    if any(seconds is not None for _, seconds in rises):
        # Lines of one moment enumerate something: steps take their time, and rise by it.
        if len(dated) * 2 < len(told) or not dated:
            return False
        rate = median(dated)
        return rate <= MOST_RATE and sum(
            rate / WIDER <= each <= rate * WIDER for each in dated
        ) >= EVEN * len(dated)
    return sum(rise <= WIDER * usual for rise, _ in rises) >= EVEN * len(rises)


def _since_first_said(course: _Course, far: float) -> Iterator[tuple[int, float | None]]:
    """How much each value rises above the one before, and in what time since that was said first.

    Of many writers in one file each says a step at its own moment, and the last of one step may speak right
    before the first of the next. After a fall by `far` it begins anew.
    """
    highest, first = course.values[0], course.lines[0]
    for value, line in zip(course.values, course.lines, strict=True):
        if value > highest:
            yield value - highest, _seconds(first, line)
        if value > highest or value < highest - far:
            highest, first = value, line


def _seconds(before: Line, after: Line) -> float | None:
    if before.time is None or after.time is None:
        return None
    return max(0.0, after.time - before.time)


def _is_clock(course: _Course) -> bool:
    first, last = course.lines[0].time, course.lines[-1].time
    if first is None or last is None or last <= first:
        return False
    rate = (course.values[-1] - course.values[0]) / (last - first)
    return any(abs(rate / unit - 1.0) < CLOCK_LIKE for unit in (1.0, 1e3, 1e6, 1e9))


def _usual_rise(courses: Sequence[_Course]) -> float:
    rises = [
        later - earlier for each in courses for earlier, later in pairwise(each.values) if later > earlier
    ]
    return median(rises)


def _range(courses: Sequence[_Course]) -> tuple[int, int]:
    return min(min(each.values) for each in courses), max(max(each.values) for each in courses)


def _span(course: _Course, ends: Mapping[str, int]) -> float:
    """Which part of its file a course spans, in bytes: a loop at start-up spans little."""
    first, last = course.lines[0], course.lines[-1]
    return (last.offset - first.offset) / max(1, ends[last.file])
