"""Communicators that broke in the run: steps had been made with them, so that it is no failure to create one.

Older releases of NCCL call a connection that its peer closed a system error, as a failure at start-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark

_SYSTEM_ERROR = regex(r"\bunhandled system error\b|\bncclSystemError\b")
_CREATING = regex(r"ncclCommInit|ncclCommSplit|ncclGetUniqueId|\b[Bb]ootstrap")
STEPS_BEFORE = 3  # so many steps of this attempt went through all communicators


def broken_in_the_run(candidates: Sequence[Candidate], scene: Scene, progress: Progress) -> list[Candidate]:
    """The candidates, with system errors of communicators that had worked told as the loss of a peer."""
    restarts = [sign.line for sign in scene.marked(Mark.RESTART)]
    return [
        replace(each, failure_type="collective.remote_error")
        if each.failure_type == "collective.init"
        and _SYSTEM_ERROR.search(each.line.text[:4000])
        and not _CREATING.search(each.line.text[:4000])
        and _steps_before(each, restarts, progress) >= STEPS_BEFORE
        else each
        for each in candidates
    ]


def _steps_before(candidate: Candidate, restarts: Sequence[Line], progress: Progress) -> int:
    """How many steps stand between the start of the candidate's attempt and it."""
    broke = candidate.line
    starts = [line for line in restarts if _is_earlier(line, broke)]
    return sum(
        point.line.attempt == broke.attempt
        and _is_earlier(point.line, broke)
        and not any(_is_earlier(point.line, start) for start in starts)
        for trace in progress.traces
        for point in trace.points
    )


def _is_earlier(line: Line, other: Line) -> bool:
    if line.file == other.file:
        return line.number < other.number
    return line.time is not None and other.time is not None and line.time < other.time
