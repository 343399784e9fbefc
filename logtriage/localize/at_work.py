"""A job that somebody saw at work: alive, and what it writes was only just written.

A log without steps, or one in which work goes on behind the words that the training is done, ends like that
of a job that hangs. A look beside it (`date` with `squeue`, `ps`, `docker ps`, `ls`) tells whether it still
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from logtriage.localize.frozen import naive, told_now
from logtriage.localize.grown import PROMPT, grown
from logtriage.localize.onlookers import GLANCE_LINES, LATER_SECONDS, Sight, running
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

FRESH = timedelta(minutes=5)  # before the look, within which something was written
AHEAD = timedelta(minutes=2)  # behind the clock: what was listed after it
STALE = timedelta(minutes=15)  # since a log of the job was written last
WENT_ON_LINES, WENT_ON_SECONDS = 10, 120.0  # behind the words that all is done
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
    looks = {reading.source.file: reading.lines for reading in scene.readings if is_look(reading.lines)}
    logs = {
        reading.source.file: reading.lines
        for reading in scene.readings
        if reading.source.role in JOB_ROLES and reading.source.file not in looks
    }
    for file, lines in {**({} if looks else logs), **({} if logs else looks)}.items():
        if (asked := _look_at_the_end(lines)) is not None:
            looks[file], logs[file] = lines[asked:], lines[:asked]
    written_last = [[line for line in lines if line.text.strip()][-LAST_LINES:] for lines in logs.values()]
    ends = [lines[-1] for lines in written_last if lines]
    if not looks or not ends or any(_WAITS.search(line.text[:400]) for line in ends):
        return None
    names = {file.rsplit("/", 1)[-1] for file in logs}
    newest = max(
        (line.time for lines in logs.values() for line in lines if line.time is not None), default=None
    )
    alive = {line.file for line, _ in running(scene)}
    for file, look in looks.items():
        if (more := grown(look)) is not None and _WAITS.search(more.text[:400]) is None:
            return Sight(more, "what it writes had grown when somebody looked again")
        now = max((now for line in look for now in told_now(line)), default=None)
        is_alive = file in alive or any(_ALIVE.search(line.text[:300]) for line in look)
        if now is None or not is_alive:
            continue
        if (busy := _computes(look, [line for lines in written_last for line in lines])) is not None:
            return Sight(busy, "it kept many cores busy with what it had begun last, when somebody looked")
        written = list(_written(look, now))
        if any(file in names and now - at > STALE for _, file, at in written):
            return None
        for line, _, at in written:
            if -AHEAD <= now - at <= FRESH:
                return Sight(line, "it was alive, and wrote, when somebody looked")
        if newest is not None and -AHEAD <= now - naive(newest) <= FRESH:
            seen = next(line for line in look if any(True for _ in told_now(line)))
            return Sight(seen, "it was alive when somebody looked, and had just written")
    return None


LAST_LINES = 5  # in which a log says what was begun last
LEAST_ABOVE = 8  # lines of a log above a look at its end


def _look_at_the_end(lines: Sequence[Line]) -> int | None:
    """Where a person asks what time it is, behind a log that he printed, and nothing but answers follow."""
    for at in range(max(LEAST_ABOVE, len(lines) - GLANCE_LINES), len(lines)):
        asked = PROMPT.match(lines[at].text[:300])
        if asked is not None and _DATE.search(asked["asked"]) is not None:
            return at if PROMPT.match(lines[0].text[:300]) is not None else None
    return None


_DATE = regex(r"(?:^|[;&'\" ])date\b")
# What takes long before the first step, without a word, on many cores.
_BUILDS = regex(
    r"(?i)\b(?:(?:re)?compil(?:e|es|ing|ation)|lowering|autotun\w*|building|tracing|optimi[sz]ing|linking)\b"
)
_BUSY_ROW = regex(r"^\s*\d{1,8} \S+ +(?:rt|-?\d{1,3}) +-?\d{1,3} .{6,80} R +(?P<cpu>\d{1,5}\.\d) ")
MANY_CORES = 300.0  # per cent: who waits for others spins on one


def _computes(look: Sequence[Line], last: Sequence[Line]) -> Line | None:
    """The row of `top` of a process on many cores, where the last that the job began is such work."""
    if not any(_BUILDS.search(line.text[:400]) for line in last):
        return None
    rows = ((line, _BUSY_ROW.match(line.text[:300])) for line in look)
    return next((line for line, row in rows if row is not None and float(row["cpu"]) >= MANY_CORES), None)


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
    if len(lines) > GLANCE_LINES:
        return False
    first = next((line.text for line in lines if line.text.strip()), "")
    if PROMPT.match(first[:300]) is None:
        return False
    # Below the one command that began it, a log may stand.
    called = sum(PROMPT.match(line.text[:300]) is not None for line in lines)
    return called > 1 or any(True for line in lines for _ in told_now(line)) or not _is_drawn(lines)


def _is_drawn(lines: Sequence[Line]) -> bool:
    """Whether a bar with its pace is drawn there: a program writes, and none that looks."""
    return any(_BAR.search(line.text[-400:]) is not None for line in lines)


_BAR = regex(r"\[(?:\d{1,4}:)?\d{1,2}:\d\d[<,]")


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
