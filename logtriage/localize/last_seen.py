"""When the job wrote last, beside its steps: by its own lines alone, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from logtriage.localize.at_work import is_look
from logtriage.localize.frozen import told_now
from logtriage.localize.onlookers import clocks
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.rulebank.matcher import without_digits

FORM_WIDTH = 20  # of a message without its numbers
QUARTER = 900.0  # by which zones differ
LONGEST_ZONE = 14 * 3600.0
DATED = 40  # lines of a file that are asked whether they tell a zone, at each end


def last_seen(scene: Scene, last: Line) -> float | None:
    """The latest time of the job's own lines.

    Where its steps are dated at their head, a time within the words of a line after them (of what is to come,
    of what somebody saw) is none at which the job wrote, and neither is what `date` printed; it is one if
    lines of that form were written while it made steps.
    """
    dated_within = any(clocks(last.message[:400]))
    shown = last.time is not None and any(_is_at(now, last.time) for now in clocks(last.text[:400]))
    times: list[float] = []
    usual: set[tuple[str, str]] = set()
    late: list[tuple[float, tuple[str, str]]] = []
    for reading in scene.readings:
        lines = reading.lines if reading.source.role in JOB_ROLES else ()
        if reading.source.file != last.file and is_look(lines) and any(map(_is_now, lines)):
            continue  # below what `date` printed nothing was written by the job
        ahead = _ahead(lines) if shown and reading.source.file != last.file else 0.0
        for line in lines:
            if line.time is None:
                continue
            time = line.time - ahead
            before = last.time is not None and time <= last.time
            is_within = not dated_within and ":" in line.message and any(clocks(line.message[:400]))
            form = (line.file, without_digits(line.message[:FORM_WIDTH])) if is_within else None
            if before:
                times.append(time)
                usual |= {form} if form is not None else set()
            elif form is not None:
                late.append((time, form))
            elif dated_within or line.message.strip():
                times.append(time)
    return max((*times, *(time for time, form in late if form in usual)), default=None)


def _is_now(line: Line) -> bool:
    return any(True for _ in told_now(line))


def _is_at(now: datetime, time: float) -> bool:
    return abs(now.replace(tzinfo=UTC).timestamp() - time) <= 1.0


def _ahead(lines: Sequence[Line]) -> float:
    """By how much a file whose lines name a zone west of Greenwich is ahead of what its clock showed.

    Where the steps name no zone, they and it were dated by clocks on one wall.
    """
    found = 0.0
    for line in (*lines[:DATED], *lines[DATED:][-DATED:]):
        if line.time is None or ":" not in line.text[:400]:
            continue
        for now in clocks(line.text[:400]):
            ahead = line.time - now.replace(tzinfo=UTC).timestamp()
            if QUARTER / 2 < ahead <= LONGEST_ZONE and abs(ahead - round(ahead / QUARTER) * QUARTER) <= 1.0:
                found = max(found, ahead)
    return found
