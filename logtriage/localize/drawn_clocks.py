"""When bars without times were drawn last, by the clocks that they draw; hours later somebody looked.

A bar tells for how long it runs: behind the last dated line above it, that is a time. Of several bars those
that are not full are asked; a full one only where its program was seen to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from logtriage.localize.frozen import LATER_INTERVALS, LINES_BEHIND, is_zone, naive, told_now
from logtriage.localize.onlookers import GLANCE_LINES, LATER_SECONDS, Sight
from logtriage.localize.progress import Trace
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_DRAWN = regex(
    r"(?P<count>\d{1,9})/(?P<total>\d{1,9}) \[(?:(?P<hours>\d{1,4}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)<"
    r"(?:[\d:?]{1,12}, {1,3}(?P<pace>\d{1,6}(?:\.\d{1,3})?)s/)?"
)
# What a shell says of a program that was suspended: it had not ended.
_SUSPENDED = regex(r"^\[\d{1,3}\][+-]? +(?:Stopped|Suspended|Angehalten|Detenido|已停止)\b")
WIDTH = 1 << 20


@dataclass(frozen=True, slots=True)
class _Bar:
    """The last draw of a file's bars, when that was, and the seconds that a step took."""

    line: Line
    at: datetime
    pace: float
    is_full: bool


def stale_bars(scene: Scene, traces: Sequence[Trace]) -> tuple[Line, Sight] | None:
    """The bar that stands longest, and the line that tells how late it was when somebody looked."""
    files = dict.fromkeys(trace.file for trace in traces if "%|" in trace.last.line.text)
    bars = [bar for file in files if (bar := _last_drawn(scene.lines(file))) is not None]
    if not bars or len(bars) < len(files):
        return None
    asked = [bar for bar in bars if not bar.is_full]
    if not asked and len(bars) == 1 and _was_suspended(scene, bars[0].line):
        asked = bars
    seen = max(_looks(scene, [bar.line for bar in bars]), key=lambda each: each[0], default=None)
    if not asked or seen is None:
        return None
    silences = [(seen[0] - bar.at).total_seconds() for bar in asked]
    if is_zone(min(silences)):
        return None  # the one that was drawn last may have been seen at once, by a clock of another zone
    for bar, silence in zip(asked, silences, strict=True):
        if silence <= max(LATER_SECONDS, LATER_INTERVALS * bar.pace):
            return None
    first = min(asked, key=lambda bar: bar.at)
    silence = (seen[0] - first.at).total_seconds()
    return first.line, Sight(seen[1], f"{silence:.0f} s after the bar was drawn last somebody looked")


def _last_drawn(lines: Sequence[Line]) -> _Bar | None:
    """By the time of the last dated line above the bars, and what all of them ran, one after the other."""
    began: float | None = None
    dated: float | None = None
    ran: dict[str, tuple[float, float]] = {}  # by a bar's total: of those that ended, and of the last one
    found: tuple[Line, float, bool] | None = None
    for line in lines:
        drawn = list(_DRAWN.finditer(line.text[:WIDTH])) if "%|" in line.text else []
        if not drawn:
            dated = line.time if line.time is not None else dated
            continue
        for bar in drawn:
            elapsed = 3600.0 * int(bar["hours"] or 0) + 60.0 * int(bar["minutes"]) + int(bar["seconds"])
            past, last = ran.get(bar["total"], (0.0, 0.0))
            is_anew = elapsed < last or not ran
            if is_anew and dated is not None and dated > (began or 0.0):
                began, past, last = dated, 0.0, 0.0  # what ran before is in this time
                ran.clear()
            ran[bar["total"]] = (past + last, elapsed) if elapsed < last else (past, elapsed)
        count = int(drawn[-1]["count"])
        pace = float(drawn[-1]["pace"] or 0.0) or elapsed / max(1, count)
        found = line, pace, count >= int(drawn[-1]["total"])
    if found is None or began is None:
        return None
    whole = sum(past + last for past, last in ran.values())
    return _Bar(found[0], naive(began) + timedelta(seconds=whole), found[1], found[2])


def _looks(scene: Scene, ends: Sequence[Line]) -> Iterator[tuple[datetime, Line]]:
    """The times at which somebody looked, and the lines that tell them."""
    behind = {line.file: line.number for line in ends}
    for reading in scene.readings:
        since = behind.get(reading.source.file, 0)
        lines = [line for line in reading.lines if line.number > since]
        if len(lines) <= (LINES_BEHIND if since else GLANCE_LINES):
            yield from ((now, line) for line in lines for now in told_now(line))


def _was_suspended(scene: Scene, bar: Line) -> bool:
    return any(
        line.number > bar.number and _SUSPENDED.match(line.text[:80]) is not None
        for line in scene.lines(bar.file)[-LINES_BEHIND:]
    )
