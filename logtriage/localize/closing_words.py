"""When an undated exception was raised: its launcher, which bears times, noticed the end right away.

A traceback bears no time and takes that of the line above it, which a quiet process may have written hours
before. Where the next words are those of the launcher that ends the other processes, that is when it was.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark, Role

_CLOCK = regex(r"\d:\d\d")
HEAD_WIDTH = 120  # of a line, in which it would tell its time
MOST_LINES = 400  # of undated words: of several ranks' tracebacks


def with_closing_times(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """The candidates, with those that bear no time at the one at which their launcher noticed their end."""
    closing = {
        (sign.line.file, sign.line.number)
        for sign in (*scene.symptoms, *scene.marked(Mark.EXIT))
        if sign.rule.marks is Mark.EXIT
        or (sign.rule.role is Role.SYMPTOM and str(sign.rule.failure_type).startswith("process."))
    }
    return [
        replace(each, time=noticed)
        if each.role is Role.CAUSE
        and each.record is not None
        and closing
        and each.time is not None
        and (noticed := _noticed(each, scene.lines(each.line.file), closing)) is not None
        else each
        for each in candidates
    ]


def _noticed(candidate: Candidate, lines: Sequence[Line], closing: set[tuple[str, int]]) -> float | None:
    """The time of the launcher's word, where all from the exception to it is undated."""
    line = candidate.line
    if _CLOCK.search(line.text[:HEAD_WIDTH]) is not None:
        return None
    first = bisect.bisect_right(lines, line.number, key=lambda each: each.number)
    for later in lines[first : first + MOST_LINES]:
        if _CLOCK.search(later.text[:HEAD_WIDTH]) is None:
            continue
        told = later.time is not None and (later.file, later.number) in closing
        return later.time if told and (later.time or 0.0) > (candidate.time or 0.0) else None
    return None
