"""Codes that a process chose itself to leave with, behind its last words: mp.spawn raises for each but 0.

Its parent tells a signal by its name, so that a number is never one. A program that calls `os._exit(117)`
when it is done leaves with that, whatever its launcher makes of it.
"""

from __future__ import annotations

from logtriage.localize.scene import Scene
from logtriage.model import Level, Line
from logtriage.regex import regex

LEAST = 3  # 1 is that of an exception, 2 that of wrong arguments
_RAISES = regex(
    r"^\s*(?:[\w.]{1,120}\.)?(?:ProcessExited)?Exception: process \d{1,6} terminated with exit code \d"
)


def is_own_code(line: Line) -> bool:
    """Whether a line tells of a code as it was given to `exit`, and of no signal."""
    return _RAISES.match(line.text[:300]) is not None


def left_by_itself(scene: Scene, done: Line, end: Line, code: int) -> bool:
    """Whether a process was done and left with a code that its parent alone takes for a failure."""
    if code < LEAST or not is_own_code(end):
        return False
    loud = (
        line.number
        for line in scene.lines(done.file)
        if done.number < line.number < end.number and line.level in (Level.ERROR, Level.CRITICAL)
    )
    raised = (
        record
        for record in scene.records[done.file]
        if record.raised and done.number < record.lines[0].number and end not in record.lines
    )
    return next(loud, None) is None and next(raised, None) is None
