"""Logs of which a part was cut away: what a verdict does not see may stand there.

People hand on the last lines of a log, or lines whose ends a terminal or a form cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from logtriage.localize.cascade import CONSEQUENCES
from logtriage.localize.findings import Findings
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# What is concluded where no line tells of anything else.
_OF_SILENCE = (*CONSEQUENCES, "hang.", "slow.", "none.")
_DOTS = ("...", "\N{HORIZONTAL ELLIPSIS}", "[truncated]")
_LEAST_CUT = 4  # lines of one length, the greatest of the file, that end so
_LEAST_WIDTH = 40
_SHARE = 0.2  # of all lines so many have that length where no dots say that they go on
_NEAR, _END = 10, 8
_NUMBERS = regex(r"\d+")
_HEAD_LINES = 12
_FRAME = regex(r'\s*(?:File "[^"\n]{1,400}", line \d|#?\d{0,3} ?frame #\d{1,3}:|#\d{1,3} {1,2}0x[0-9a-f]{6})')


def may_be_cut_away(failure_type: str, findings: Findings) -> bool:
    """Whether a verdict rests on what was not said, and what may have said it is gone."""
    if not failure_type.startswith(_OF_SILENCE):
        return False
    readings = [each for each in findings.scene.readings if each.source.role in JOB_ROLES]
    return any(_has_cut_lines(each.lines) or _begins_inside(each.lines) for each in readings)


def _has_cut_lines(lines: Sequence[Line]) -> bool:
    lengths = Counter(len(line.text) for line in lines)
    width = max(lengths, default=0)
    full = [line.text for line in lines if len(line.text) == width]
    if width < _LEAST_WIDTH or len(full) < _LEAST_CUT:
        return False
    if 2 * sum(text.endswith(_DOTS) for text in full) > len(full):
        return True
    # Lines that end by themselves and differ in their ends differ in their lengths too.
    ends = {_NUMBERS.sub("0", text[-_END:]) for text in full}
    is_heap = not any(lengths[width - less] for less in range(1, _NEAR))
    return len(ends) > 1 and is_heap and len(full) >= _SHARE * len(lines)


def _begins_inside(lines: Sequence[Line]) -> bool:
    """Whether the first lines are frames of a stack whose heading is not there."""
    if not lines or lines[0].number != 1:
        return False
    for line in lines[:_HEAD_LINES]:
        if _FRAME.match(line.message) is not None:
            return True
        if line.message.strip() and not line.message[0].isspace():
            return False  # not the source that frames show
    return False
