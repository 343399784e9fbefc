"""How far each rank came: step traces, checkpoints, and whether an error was followed by progress."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from logtriage.localize.scene import Scene, Sign
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark


@dataclass(frozen=True, slots=True)
class StepPoint:
    step: int
    total: int | None
    line: Line
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps that one rank (or one file that names no rank) reported, in file order."""

    rank: int | None
    file: str
    points: tuple[StepPoint, ...]

    @property
    def last(self) -> StepPoint:
        return self.points[-1]

    @property
    def goal(self) -> int | None:
        """The total that one of the last points knows: not every line of a step repeats it."""
        return next((point.total for point in reversed(self.points[-4:]) if point.total is not None), None)


@dataclass(frozen=True, slots=True)
class Progress:
    traces: tuple[Trace, ...]
    checkpoints: tuple[Sign, ...]
    completed: tuple[Sign, ...]
    resumed: tuple[Sign, ...]
    _lines_by_writer: dict[tuple[str, int | None], list[int]]

    @property
    def last_step(self) -> StepPoint | None:
        """The furthest step that any rank reported in the latest stretch of the job.

        Of several reports of it the one of the longest trace: the others may only repeat its last line.
        """
        ends = [
            (trace.last.line.time or 0.0, trace.last.step, len(trace.points), trace) for trace in self.traces
        ]
        furthest = max(ends, key=lambda each: each[:3], default=None)
        return furthest[3].last if furthest else None

    @property
    def last_time(self) -> float | None:
        times = [point.line.time for trace in self.traces for point in trace.points if point.line.time]
        return max(times, default=None)

    def steps_after(self, line: Line) -> int:
        """How many progress lines the writer of `line` wrote after it.

        The writer is the line's rank. Where the line names none, any rank of the file may have written
        it, so the rank with the fewest later steps counts.
        """
        after = {
            rank: len(numbers) - bisect.bisect_right(numbers, line.number)
            for (file, rank), numbers in self._lines_by_writer.items()
            if file == line.file
        }
        if line.rank is not None and line.rank in after:
            return after[line.rank]
        if line.rank is not None and any(rank is not None for rank in after):
            return 0
        return min(after.values(), default=0)

    def new_steps_after(self, line: Line) -> int:
        """As `steps_after`, without lines that only name the last step again, as an evaluation of it does."""
        repeats = [0]
        for trace in self.traces:
            if trace.file == line.file and (line.rank is None or trace.rank in (None, line.rank)):
                reached = [point.step for point in trace.points if point.line.number <= line.number][-1:]
                later = [point.step for point in trace.points if point.line.number > line.number]
                repeats.append(sum(step in reached for step in later))
        return self.steps_after(line) - max(repeats)

    def without(self, files: frozenset[str]) -> Progress:
        """The progress in all other files."""
        if not files:
            return self
        return Progress(
            traces=tuple(each for each in self.traces if each.file not in files),
            checkpoints=tuple(each for each in self.checkpoints if each.line.file not in files),
            completed=tuple(each for each in self.completed if each.line.file not in files),
            resumed=tuple(each for each in self.resumed if each.line.file not in files),
            _lines_by_writer={key: at for key, at in self._lines_by_writer.items() if key[0] not in files},
        )

    def with_one_count(self) -> Progress:
        """With progress bars counting as the lines beside them do, or without them if they cannot be matched.

        A bar may count an epoch's or this run's steps while lines beside it count the job's.
        """
        points = [point for trace in self.traces for point in trace.points]
        bars = sorted((point.line.time or 0.0, point.step) for point in points if _is_bar(point))
        told = [(point.line.time or 0.0, point.step) for point in points if not _is_bar(point)]
        if not bars or not told:
            return self
        # What was told where bars were not read says nothing of their count.
        ahead = sorted(
            step - bars[at - 1][1]
            for time, step in told
            if (at := bisect.bisect_right(bars, (time, 1 << 62))) > 0
            and bars[min(at, len(bars) - 1)][1] - bars[at - 1][1] <= AGREEING_STEPS
        )
        middle = ahead[len(ahead) // 8 : len(ahead) - len(ahead) // 8]
        agree = len(ahead) >= LEAST_TOLD and middle[-1] - middle[0] <= AGREEING_STEPS
        by = ahead[len(ahead) // 2] if agree else None

        def counted(point: StepPoint) -> StepPoint | None:
            if not _is_bar(point):
                return point
            return replace(point, step=point.step + by) if by is not None else None

        traces = [
            Trace(trace.rank, trace.file, known)
            for trace in self.traces
            if (known := tuple(each for point in trace.points if (each := counted(point)) is not None))
        ]
        return replace(self, traces=tuple(traces))

    def joined(self, more: Progress) -> Progress:
        """With the points and checkpoints that a closer look at some file found."""
        points: dict[tuple[str, int | None], dict[int, StepPoint]] = {}
        for trace in (*self.traces, *more.traces):
            points.setdefault((trace.file, trace.rank), {}).update(
                (point.line.number, point) for point in trace.points
            )
        saved = {(each.line.file, each.line.number): each for each in (*self.checkpoints, *more.checkpoints)}
        return replace(
            self,
            traces=tuple(
                Trace(rank, file, tuple(known[number] for number in sorted(known)))
                for (file, rank), known in points.items()
            ),
            checkpoints=_in_order(saved.values()),
        )

    def with_traces(self, traces: Iterable[Trace]) -> Progress:
        """With the steps of these writers, beside the bars that they drew."""
        found = {(each.file, each.rank): each for each in self.traces}
        for each in traces:
            known = found.get((each.file, each.rank))
            drawn = known.points if known is not None and _is_bar(known.last) else ()
            points = {point.line.number: point for point in (*drawn, *each.points)}
            ordered = tuple(points[number] for number in sorted(points))
            found[each.file, each.rank] = Trace(each.rank, each.file, ordered)
        lines = {key: [point.line.number for point in each.points] for key, each in found.items()}
        return replace(
            self, traces=tuple(found.values()), _lines_by_writer={**self._lines_by_writer, **lines}
        )

    @property
    def is_told(self) -> bool:
        """Whether some writer reported steps again and again, and not by a bar, which may count anything."""
        return any(sum(not _is_bar(point) for point in trace.points) >= TOLD for trace in self.traces)

    def ranks(self) -> set[int]:
        return {trace.rank for trace in self.traces if trace.rank is not None}


TOLD = 4  # so many steps of a writer are reports; fewer may be anything that mentions one
AGREEING_STEPS = 3  # by which a bar's count and the lines' may drift apart
LEAST_TOLD = 2  # lines beside bars that agree on what the bars count


_BAR = regex(r"%\|[^|\n]{0,300}\|\s*(\d+)/")


def _is_bar(point: StepPoint) -> bool:
    """Whether a bar tells the step, and not what another writer put behind it in the same line."""
    if "%|" not in point.text:
        return False
    drawn = _BAR.search(point.text)
    return drawn is None or int(drawn[1]) == point.step


def gather(scene: Scene) -> Progress:
    """The traces of a scene; a line with several progress-bar states gives its last one."""
    by_writer: dict[tuple[str, int | None], list[StepPoint]] = {}
    unnumbered: dict[tuple[str, int | None], list[int]] = {}  # lines that show life but count no step
    seen: set[tuple[str, int]] = set()
    signs = sorted(scene.marked(Mark.STEP), key=lambda each: (each.line.file, each.line.number))
    numbered = {(sign.line.file, sign.rank) for sign in signs if sign.hit.capture("step")}
    for sign in signs:
        step = _number(sign.hit.capture("step"))
        if step is None and (sign.line.file, sign.rank) not in numbered:
            step = len(by_writer.get((sign.line.file, sign.rank), ())) + 1  # it only tells of an epoch
        if step is None:
            unnumbered.setdefault((sign.line.file, sign.rank), []).append(sign.line.number)
            continue
        key = (sign.line.file, sign.rank)
        points = by_writer.setdefault(key, [])
        line = _dated(sign.line, scene)
        point = StepPoint(step, _number(sign.hit.capture("total")), line, sign.text)
        if (line.file, line.number) in seen and points and points[-1].line == line:
            if "\r" in line.text or step > points[-1].step:
                points[-1] = point
            continue
        seen.add((line.file, line.number))
        points.append(point)
    return Progress(
        traces=tuple(
            Trace(rank, file, tuple(points)) for (file, rank), points in by_writer.items() if points
        ),
        checkpoints=_saved(scene.marked(Mark.CHECKPOINT)),
        completed=tuple(scene.marked(Mark.COMPLETED)),
        resumed=tuple(scene.marked(Mark.RESUMED)),
        _lines_by_writer={
            key: sorted({*(point.line.number for point in points), *unnumbered.get(key, ())})
            for key, points in by_writer.items()
        },
    )


DATED_LINES = 40


def _dated(line: Line, scene: Scene) -> Line:
    """A line that bears no time with that of the lines just above it, which others wrote into the file."""
    if line.time is not None:
        return line
    lines = scene.lines(line.file)
    at = bisect.bisect_left(lines, line.number, key=lambda each: each.number)
    above = (each.time for each in reversed(lines[max(0, at - DATED_LINES) : at]))
    return replace(line, time=next((time for time in above if time is not None), None))


def _saved(signs: Iterable[Sign]) -> tuple[Sign, ...]:
    """One sign a line, the one that knows the step; in the order of time, then of place."""
    best: dict[tuple[str, int], Sign] = {}
    for sign in signs:
        place = (sign.line.file, sign.line.number)
        if place not in best or best[place].hit.capture("step") is None:
            best[place] = sign
    return _in_order(best.values())


def _in_order(signs: Iterable[Sign]) -> tuple[Sign, ...]:
    return tuple(sorted(signs, key=lambda sign: (sign.line.time or 0.0, sign.line.file, sign.line.number)))


_THOUSANDS = {"k": 3, "M": 6}


def _number(text: str | None) -> int | None:
    """A count as programs write it: `1,200`, `1_200`, `1200.0`, `1.2k`."""
    if text is None:
        return None
    whole, _, part = text.replace(",", "").replace("_", "").rstrip("kM").partition(".")
    zeros = _THOUSANDS.get(text[-1:], 0)
    digits = whole + part[:zeros].ljust(zeros, "0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def by_rank(traces: Iterable[Trace]) -> dict[int, Trace]:
    """One trace a rank: where a rank wrote to several files, the one that went furthest."""
    best: dict[int, Trace] = {}
    for trace in traces:
        if trace.rank is None:
            continue
        known = best.get(trace.rank)
        if known is None or trace.last.step > known.last.step:
            best[trace.rank] = trace
    return best


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def usual_interval(traces: Sequence[Trace]) -> float:
    """The median time between steps in seconds; 0 where the steps' times are not their own."""
    # Ranks that report together share their times; steps of one rank do only if they are not its own.
    # Of ranks that write into one file without a name the first to report a step tells when it was made.
    firsts = [
        [point for at, point in enumerate(trace.points) if at == 0 or point.step != trace.points[at - 1].step]
        for trace in traces
    ]
    stamps = sum(len({point.line.time for point in points}) for points in firsts)
    if stamps * 4 < sum(map(len, firsts)):
        return 0.0
    gaps: list[float] = []
    for points in firsts:
        times = [point.line.time for point in points if point.line.time is not None]
        gaps += [later - earlier for earlier, later in pairwise(times) if later > earlier]
    return median(gaps) if gaps else 0.0
