"""A program that no word says to be done, but that had saved behind all its steps, or left its terminal.

Loops of one's own, and trainers such as kohya's, only save after their last step. Of a terminal that was
copied the prompt that came back below says that the program ended; a crash or an exception would stand there.
"""

from __future__ import annotations

from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.localize.shells import back_at_the_shell
from logtriage.model import Level, Line
from logtriage.regex import regex

# `***** Total optimization steps = 2,100`, `total train steps: 900`
WHOLE = regex(
    r"(?i)\btotal (?:number of )?(?:optimi[sz]ation|training|train|update|global) steps?\b[^\n=:\d]{0,40}"
    r"[=:] ?(?P<total>\d[\d,]{0,11})(?![\d.])"
)
_SAVED = regex(
    r"(?i)\b(?:model|weights|checkpoint|adapter|state)s?(?: \S{1,40})? "
    r"(?:(?:was|were|has been|have been|successfully) ){0,2}saved\b"
    r"|\bsaved\b[^\n]{0,60}\b(?:model|weights|checkpoint|ckpt|adapter|state(?:_dict)?)s?\b"
)
LAST_LINES = 40  # behind the last step: a save, an evaluation, what trackers say when they close


def left_in_order(scene: Scene, progress: Progress) -> Line | None:
    """The line that saves below the last step, where that was the last of all, or the prompt came back."""
    if (last := progress.last_step) is None:
        return None
    lines = scene.lines(last.line.file)
    below = [line for line in lines if line.number > last.line.number and line.text.strip()]
    if not 0 < len(below) <= LAST_LINES or any(_is_loud(line) for line in below):
        return None
    saved = next((line for line in below if _SAVED.search(line.text[:600])), None)
    if saved is None:
        return None
    back = back_at_the_shell(lines)
    is_back = back is not None and back.number > saved.number
    return saved if is_back or _is_last_of_all(scene, progress) else None


def _is_loud(line: Line) -> bool:
    return line.level in (Level.ERROR, Level.CRITICAL) or line.text.lstrip().startswith("^C")


def _is_last_of_all(scene: Scene, progress: Progress) -> bool:
    """Whether all who report steps have come to the total that the trainer stated for the whole run."""
    goals = {trace.goal for trace in progress.traces}
    if len(goals) != 1 or (goal := goals.pop()) is None:
        return False
    if any(trace.last.step + 1 < goal for trace in progress.traces):
        return False
    return any(
        int(whole["total"].replace(",", "")) == goal
        for reading in scene.readings
        for line in reading.lines
        if "steps" in line.text and (whole := WHOLE.search(line.text[:600])) is not None
    )
