"""How far a log came with what it had to do: a count of a number that it named, in whatever words.

`part 12 of 40`, `(96/96)`, `30 von 30`: whatever is counted, a number that stays and one that rises to it
tell the work that there is and what of it is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from logtriage.localize.progress import Trace
from logtriage.model import Line
from logtriage.regex import regex

_COUNT = regex(
    r"(?<![\w./:%+~-])(?P<done>\d{1,9})(?: ?/ ?(?:共 ?)?| (?i:of|out of|von|van|sur|de|di|su|из|z|av|af) )"
    r"(?P<all>\d{1,9})(?![\w/-]|[.:]\d)"
)
_PERCENT = regex(r"(?<![\d.])(?P<done>\d{1,3})(?:\.\d{1,3})? ?%")
# Who writes is numbered as well, and so is who tries again; and what is only brought in before the work.
_NO_WORK = regex(
    r"(?i)\b(?:ranks?|nodes?|hosts?|gpus?|devices?|workers?|process(?:es)?|threads?|replicas?)[\s#:=(\[]{0,4}$"
    r"|\b(?:attempts?|tr(?:y|ies)|retr(?:y|ies|ying)\w*|wait\w*|(?:pre)?load(?:ed|ing)?|import\w*|fetch\w*"
    r"|captur\w*|warm\w*|initiali\w+|connect\w*|join\w*|compil\w+|resum\w+|restor\w+)\b"
)
_ROUND = regex(r"(?i)\b(?:epochs?|rounds?|pass(?:es)?|stages?|phases?|folds?|cycles?|iterations?|steps?)\b")
LEAST_VALUES = 4  # of a count that rises
FEW_VALUES = 3  # … of one that is under way
LEAST_SPAN = 0.3  # of its file that it must cover: what is counted at start-up covers less
LABEL = 40  # characters before a count that say what is counted
WIDTH, PART = 600, 300
LEAST_ALL, PERCENT = 2, 100
Key = TypeVar("Key")


@dataclass(slots=True)
class _Course:
    """The values of a count towards one number, where it began, and where it stands."""

    values: set[int]
    first: Line
    last: Line
    done: int
    is_round: bool


@dataclass(frozen=True, slots=True)
class AllDone:
    """The last line that counts all of all, and how many these are; 100 of what is told in percent."""

    line: Line
    whole: int
    is_sum: bool = False  # the line tells into which parts they fall


def all_done(lines: Sequence[Line], traces: Sequence[Trace]) -> AllDone | None:
    """Where a log counts all of all, and nothing that it counts is left undone."""
    if not lines:
        return None
    courses: dict[int, _Course] = {}
    percents: dict[str, _Course] = {}
    fallen: dict[str, bool] = defaultdict(bool)
    for line in lines:
        text = line.message or line.text
        if len(text) > WIDTH:  # a bar that is drawn again and again: where it began, and where it stands
            text = f"{text[:PART]}\n{text[-PART:]}"
        found = list(_COUNT.finditer(text)) if any(map(str.isdigit, text)) else []
        for count in found:
            done, whole = int(count["done"]), int(count["all"])
            label = text[max(0, count.start() - LABEL) : count.start()]
            if whole >= LEAST_ALL and done <= whole and _NO_WORK.search(label) is None:
                is_round = _ROUND.search(label) is not None
                _go_on(courses, whole, line, done, is_round)
        if not found and "%" in text and (share := _PERCENT.search(text)) is not None:
            label = text[max(0, share.start() - LABEL) : share.start()]
            done = int(share["done"])
            name = "".join(filter(str.isalpha, label))
            if done <= PERCENT and _NO_WORK.search(label) is None:
                fallen[name] |= name in percents and done < percents[name].done
                _go_on(percents, name, line, done, False)
    ended = {course.last.number for whole, course in courses.items() if course.done == whole}
    if any(
        _is_under_way(course, whole) or (course.done < whole and course.last.number in ended)
        for whole, course in courses.items()
    ):
        return None  # one value may number anything, but not beside a count of all: `chapter 2/5 page 30/30`
    complete = [(whole, course) for whole, course in courses.items() if course.done == whole]
    complete += [
        (PERCENT, each) for name, each in percents.items() if each.done == PERCENT and not fallen[name]
    ]
    rising = [(whole, course) for whole, course in complete if len(course.values) >= LEAST_VALUES]
    if rising:
        covered = max(each.last.offset for _, each in rising) - min(each.first.offset for _, each in rising)
        if covered < LEAST_SPAN * (lines[-1].offset - lines[0].offset):
            rising = []
    ends = [
        AllDone(trace.last.line, trace.last.step) for trace in traces if _came_to_its_number(lines, trace)
    ]
    # What the steps came to may be told as all of all only once, behind them.
    reached = {trace.last.step for trace in traces if len(trace.points) >= LEAST_VALUES}
    last_step = max((trace.last.line.number for trace in traces), default=0)
    rising += [
        (whole, course)
        for whole, course in complete
        if {whole, whole - 1} & reached and course.last.number > last_step
    ]
    ends += [AllDone(course.last, whole) for whole, course in rising]
    ends += [
        AllDone(line, total, is_sum=True)
        for line in lines
        if line.number > last_step > 0 and (total := _sum_of_parts(line)) and {total, total - 1} & reached
    ]
    return max(ends, key=lambda end: end.line.number, default=None)


# What became of all that was done: `40 trials: 29 complete, 8 pruned, 3 failed`.
_OF_ALL = regex(
    r"(?<![\w.:/-])(?P<whole>\d{1,9}) (?:[a-z]{2,20} ){0,2}?[a-z]{2,20}(?: in all)?[:;,] "
    r"(?P<parts>\d[^\n]{3,200})"
)
_PART = regex(r"(?:^|[,;] |\band )(?P<part>\d{1,9}) [a-z]")
LEAST_PARTS = 2


def _sum_of_parts(line: Line) -> int | None:
    """The number of all, where a line says into which parts it falls."""
    told = _OF_ALL.search(line.message[:WIDTH])
    if told is None:
        return None
    parts = [int(found["part"]) for found in _PART.finditer(told["parts"])]
    whole = int(told["whole"])
    return whole if len(parts) >= LEAST_PARTS and sum(parts) == whole else None


# How many steps there are to be: said before the first (`500 steps`), or set (`--max-steps 500`).
_STEPS = r"(?:steps?|iter(?:ation)?s?|epochs?|rounds?|updates?|generations?|episodes?)"
_PROMISE = regex(
    rf"(?i)(?<![\w.])(?P<number>\d{{1,9}}) {_STEPS}\b"
    rf"|(?P<set>[\w-]{{0,30}}{_STEPS})['\"]?[ =:]{{1,3}}(?P<value>\d{{1,9}})(?![\w.]|/\d)"
)
# Numbers of steps after which something is done again and again, or from which a run goes on.
_NOT_ALL = regex(
    r"(?i)save|eval|log|warm|accum|ckpt|check|val|test|every|freq|per|decay|resum|start|init|done|early|patien"
)
_ONE_NUMBER = regex(r"(?<![\w.])\d{1,9}(?![\w.])")


def _came_to_its_number(lines: Sequence[Line], trace: Trace) -> bool:
    """Whether a writer's last step has the number that was promised, or that its steps all name."""
    first, last = trace.points[0], trace.last
    if len(trace.points) < LEAST_VALUES or first.step >= last.step:
        return False
    named = [
        _ONE_NUMBER.findall(point.line.message[:WIDTH]).count(str(last.step))
        for point in (first, trace.points[len(trace.points) // 2], last)
    ]
    if named[0] == named[1] == 1 and named[2] == LEAST_ALL:
        return True
    promised = {
        int(told["number"] or told["value"])
        for line in lines
        if line.number < first.line.number
        for told in _PROMISE.finditer(line.text[:WIDTH])
        if _NOT_ALL.search(told["set"] or "") is None
    }
    return max(promised, default=0) == last.step


def _go_on(courses: dict[Key, _Course], key: Key, line: Line, done: int, is_round: bool) -> None:
    course = courses.setdefault(key, _Course(set(), line, line, done, is_round))
    course.values.add(done)
    course.last, course.done = line, done
    course.is_round |= is_round


def _is_under_way(course: _Course, whole: int) -> bool:
    """Whether a count ends below what there is to do; one value may number anything but rounds."""
    return course.done < whole and (len(course.values) >= FEW_VALUES or course.is_round)
