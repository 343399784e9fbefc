"""A job that somebody saw at work: alive, and what it writes was only just written.

A log without steps, or one in which work goes on behind the words that the training is done, ends like that
of a job that hangs. A look beside it (`date` with `squeue`, `ps`, `docker ps`, `ls`) tells whether it still
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from logtriage.localize.frozen import naive, told_now
from logtriage.localize.onlookers import GLANCE_LINES, LATER_SECONDS, Sight, running
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

FRESH = timedelta(minutes=5)  # before the look, within which something was written
AHEAD = timedelta(minutes=2)  # behind the clock: what was listed after it
STALE = timedelta(minutes=15)  # since a log of the job was written last
WENT_ON_LINES, WENT_ON_SECONDS = 10, 120.0  # behind the words that all is done
_PROMPT = regex(r"^(?:[\w.-]{1,40}@[\w.-]{1,80}[^$#\n]{0,80}|\[[^\]\n]{3,100}\])?[$#] ?[a-z]")
# Rows of bjobs, qstat, `kubectl get pods`, `docker ps`, systemctl, top and ps of what is there and runs.
_ALIVE = regex(
    r"^\d{1,10}\S{0,12} +\S+ +RUN +\S|^\d{1,10}(?:\.\S{1,60})? +\S.{4,100} R \S| \d{1,3}/\d{1,3} +Running +\d"
    r"|\bUp (?:\d{1,4}|About an?|Less than a) (?:second|minute|hour|day|week)|Active: active \(running\)"
    r"|^\s*\d{1,8} \S+ +(?:rt|-?\d{1,3}) +-?\d{1,3} .{6,80} [RSD] +\d{1,5}\.\d +\d{1,3}\.\d "
    r"|^\s*(?:\S+ +)?\d{1,8} .{3,80} [RSD][lsLN+<]{0,4} .{0,40}[a-z]"
)
_LISTED = regex(
    r"^\s*-[rwxsStT-]{9}\S? +\d+ \S.{3,200}?(?P<clock>\b[0-2]\d:[0-5]\d(?::[0-5]\d)?)\S* .*?(?P<file>\S+)$"
)
_CHANGED = regex(
    r"^(?:\s*Modify: |(?P<file>\S{1,300}) )?\d{4}-\d\d-\d\d (?P<clock>\d\d:\d\d:\d\d)(?:\.\d{1,9})?"
    r"(?: [+-]\d{4})?(?: (?P<behind>\S{1,300}))?\s*$"
)
_DAY = regex(r"(?P<iso>\d{4}-\d\d-\d\d)|(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) +\d\d:\d\d")
_WAITS = regex(
    r"(?i)\b(?:wait(?:s|ing|ed)?|stuck|hang(?:s|ing)?|hung|blocked|no progress|timed? ?out|idle|retry\w*)\b"
)


def at_work(scene: Scene) -> Sight | None:
    """What shows that the job was alive when somebody looked, and that it had just written."""
    looks = [reading for reading in scene.readings if is_look(reading.lines)]
    if not looks:
        return None
    files = {reading.source.file for reading in looks}
    logs = [
        reading
        for reading in scene.readings
        if reading.source.role in JOB_ROLES and reading.source.file not in files
    ]
    ends = [line for log in logs for line in [each for each in log.lines if each.text.strip()][-1:]]
    if not ends or any(_WAITS.search(line.text[:400]) for line in ends):
        return None
    names = {log.source.file.rsplit("/", 1)[-1] for log in logs}
    newest = max((line.time for log in logs for line in log.lines if line.time is not None), default=None)
    alive = {line.file for line, _ in running(scene)}
    for look in looks:
        now = max((now for line in look.lines for now in told_now(line)), default=None)
        is_alive = look.source.file in alive or any(_ALIVE.search(line.text[:300]) for line in look.lines)
        if now is None or not is_alive:
            continue
        written = list(_written(look.lines, now))
        if any(file in names and now - at > STALE for _, file, at in written):
            return None
        for line, _, at in written:
            if -AHEAD <= now - at <= FRESH:
                return Sight(line, "it was alive, and wrote, when somebody looked")
        if newest is not None and -AHEAD <= now - naive(newest) <= FRESH:
            seen = next(line for line in look.lines if any(True for _ in told_now(line)))
            return Sight(seen, "it was alive when somebody looked, and had just written")
    return None


def went_on(scene: Scene, done: Line) -> Sight | None:
    """What shows that a job was at work for long after it said that it was done: an evaluation follows."""
    since = [line for line in scene.lines(done.file) if line.number > done.number and line.text.strip()]
    if len(since) < WENT_ON_LINES or done.time is None:
        return None
    last = max((line.time for line in since if line.time is not None), default=done.time)
    return at_work(scene) if last - done.time >= WENT_ON_SECONDS else None


def still_there(scene: Scene, done: Line) -> Sight | None:
    """What shows that a job was alive for hours behind all that it did: it never got out."""
    looks = [reading for reading in scene.readings if is_look(reading.lines)]
    files = {reading.source.file for reading in looks}
    logs = [
        reading
        for reading in scene.readings
        if reading.source.role in JOB_ROLES and reading.source.file not in files
    ]
    times = [line.time for log in logs for line in log.lines if line.time is not None and line.text.strip()]
    if not looks or not times or all(log.source.file != done.file for log in logs):
        return None
    begun, newest = naive(min(times)), naive(max(times))
    for look in looks:
        now = max((now for line in look.lines for now in told_now(line)), default=None)
        if now is None or (silence := (now - newest).total_seconds()) <= LATER_SECONDS:
            continue
        age = (now - begun).total_seconds()
        for line, elapsed in running(scene):
            # The row of another job would tell another age.
            if line.file == look.source.file and abs(elapsed - age) <= max(SLACK_SECONDS, age / 10):
                return Sight(line, f"it was done, and still there {silence:.0f} s after its last words")
    return None


SLACK_SECONDS = 900.0  # between the start of a job and the first line that it wrote


def is_look(lines: Sequence[Line]) -> bool:
    """Whether a file holds what a person asked at a terminal, and no log."""
    first = next((line.text for line in lines if line.text.strip()), "")
    return len(lines) <= GLANCE_LINES and _PROMPT.match(first[:300]) is not None


def _written(lines: Sequence[Line], now: datetime) -> Iterator[tuple[Line, str, datetime]]:
    """The files that a look lists, and when each was written, in the clock of the look."""
    for line in lines:
        text = line.text[:600]
        row = _LISTED.match(text) or _CHANGED.match(text)
        if row is None:
            continue
        clock = [int(part) for part in row["clock"].split(":")]
        try:
            at = now.replace(hour=clock[0], minute=clock[1], second=clock[2] if len(clock) > 2 else 0)
            at = _on_its_day(text, at)
        except ValueError:
            continue
        file = row["file"] or row.groupdict().get("behind") or ""
        yield line, file.rsplit("/", 1)[-1], at


def _on_its_day(text: str, at: datetime) -> datetime:
    if (told := _DAY.search(text)) is None:
        return at
    if told["iso"]:
        return datetime.combine(datetime.fromisoformat(told["iso"]).date(), at.time())
    day = datetime.strptime(f"{at.year} {told['month']} {told['day']}", "%Y %b %d")
    return datetime.combine(day.date(), at.time())
