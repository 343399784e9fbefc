"""Progress bars without times: those that stand still, and those begun below the end of what came before."""

from __future__ import annotations

import re

from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

_BAR = regex(
    r"(?P<count>\d{1,9})/(?P<total>\d{1,9}) \[(?:(?P<hours>\d{1,4}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)<"
)
FROZEN_BARS = 3
FROZEN_SECONDS = 900.0  # an evaluation or a save can hold a bar up for minutes
FROZEN_STEPS = 50.0  # of the bar's own average
BAR_LINES, BAR_WIDTH = 60, 16_384  # of the end of a file, and of each of its lines
_BARE = regex(r"^\s*\d{1,3}%\|")  # the trainer's own, not that of a download or an upload
LEAST_BETWEEN = 3  # lines between one end and the next beginning


def frozen_bar(scene: Scene, last: Line) -> float | None:
    """For how long the bar at the end of a file was drawn again and again with one count.

    Other writers make a bar draw itself anew, and so does a tick of its own: its clock goes on alone.
    """
    lines = scene.lines(last.file)
    if "%|" not in last.text or not lines or "<" not in lines[-1].text[-400:]:
        return None
    drawn = [
        (int(bar["count"]), int(bar["total"]), _elapsed(bar))
        for line in lines[-BAR_LINES:]
        for bar in _BAR.finditer(line.text[-BAR_WIDTH:])
    ]
    if not drawn or not 0 < drawn[-1][0] < drawn[-1][1]:
        return None
    run = [each for each in drawn if each[:2] == drawn[-1][:2]]
    if len(run) < FROZEN_BARS or drawn[-len(run) :] != run:
        return None
    count, _, began = run[0]
    silence = run[-1][2] - began
    return silence if silence > max(FROZEN_SECONDS, FROZEN_STEPS * began / count) else None


def frozen_before_steps(scene: Scene) -> tuple[Line, float] | None:
    """The bar with which a file ends that came no further: data or weights are prepared before steps.

    With the seconds for which it was drawn so.
    """
    for reading in scene.readings:
        last = reading.lines[-1] if reading.source.role in JOB_ROLES and reading.lines else None
        if last is not None and (silence := frozen_bar(scene, last)) is not None:
            return last, silence
    return None


def unfinished_bars(scene: Scene) -> list[Line]:
    """The bars with which files end that came to no end: of whatever was under way."""
    found = []
    for reading in scene.readings:
        lines = reading.lines if reading.source.role in JOB_ROLES else ()
        last = next((line for line in reversed(lines) if line.text.strip()), None)
        if last is None or "<" not in last.text[-400:]:
            continue
        drawn = list(_BAR.finditer(last.text[-BAR_WIDTH:]))
        if drawn and 0 < int(drawn[-1]["count"]) < int(drawn[-1]["total"]):
            found.append(last)
    return found


def drawn_anew(scene: Scene, done: Line) -> bool:
    """Whether the file in which a program says that it is done ends amid a bar that was begun after that.

    A program can call its trainer again and again, once a round, and each call says that it is done. The bar
    of a trainer that stopped early is drawn once more when it is closed: its clock goes on from the last one.
    """
    lines = [line for line in scene.lines(done.file) if line.text.strip()]
    if not lines or not _BARE.match(lines[-1].text[:40]):
        return False
    bars = list(_BAR.finditer(lines[-1].text[-BAR_WIDTH:]))
    if not bars or not 0 < int(bars[-1]["count"]) < int(bars[-1]["total"]):
        return False
    since = [line for line in lines if line.number > done.number]
    before = [
        _elapsed(bar)
        for line in lines[-BAR_LINES - len(since) : -len(since)]
        if _BARE.match(line.text[:40])
        for bar in _BAR.finditer(line.text[-BAR_WIDTH:])
    ]
    others = sum(not _BARE.match(line.text[:40]) for line in since)
    return others >= LEAST_BETWEEN and _elapsed(bars[-1]) < min(before[-1:], default=float("inf"))


def _elapsed(bar: re.Match[str]) -> float:
    return 3600.0 * int(bar["hours"] or 0) + 60.0 * int(bar["minutes"]) + int(bar["seconds"])
