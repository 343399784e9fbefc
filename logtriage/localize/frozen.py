"""A log that ended long before something beside it did: a look at the clock, a list of files, polled GPUs.

Its own lines show healthy steps to the last one. That nothing came after it is told by whoever still saw the
job alive: a person with `date`, `ls` and `squeue`, or a poll of its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from logtriage.localize.local_dates import local_dates
from logtriage.localize.onlookers import BUSY, LATER_SECONDS, LEAST_MIB, Sight, clocks, running
from logtriage.localize.progress import Trace, usual_interval
from logtriage.localize.scene import Scene
from logtriage.model import Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

LATER_INTERVALS = 30.0  # of the usual ones between steps
LINES_BEHIND = 40  # of the file of the last step, among which somebody may say what he saw
QUARTER, QUARTER_REST = 900.0, 45.0  # two clocks in different zones differ by quarters of an hour

# A line that tells of the present: what `date` prints, or words to that effect.
_PRESENT = regex(
    r"^\W{0,12}(?:date\W{1,4})?[A-Z][a-z]{2},? [A-Z\d][\w ]{3,8} .{4,30}\d{4}\W{0,4}$"
    r"|(?i:\b(?:now|still|as of|last (?:written|modified|changed|line|output|log)"
    r"|no (?:more |new |further )?output"
    r"|at present|currently|checked|state R|running since|not grown|looked)\b)"
)
# `-rw-r--r-- 1 kim lab 91120 Aug 20 20:14 train.log`
_LISTED = regex(
    r"^\s*-[rwxsStT-]{9}\S? .{1,120}? (?P<day>[A-Z][a-z]{2} +\d{1,2}) (?P<clock>\d\d:\d\d) "
    r"(?P<file>\S{1,300})\s*$"
)
# The same of `ls --time-style=+%T`, which tells no day.
_LISTED_TODAY = regex(
    r"^\s*-[rwxsStT-]{9}\S? +\d{1,4} \S{1,40} +\S{1,40} +\d{1,15} (?P<clock>[0-2]\d:[0-5]\d(?::[0-5]\d)?) "
    r"(?P<file>\S{1,300})\s*$"
)
_PERCENT = regex(r"(?<![\d.])(\d{1,3}) ?%")
_MIB = regex(r"(?<![\d.])(\d{3,7}) ?MiB")


def frozen(scene: Scene, last: Line, traces: Sequence[Trace]) -> Sight | None:
    """What shows that the job was there for far longer after its last step than its steps take."""
    if last.time is None:
        return None
    patience = max(LATER_SECONDS, LATER_INTERVALS * usual_interval(traces))
    return (
        _looked(scene, last, patience)
        or _listed(scene, last, patience)
        or _tailed(scene, last, patience)
        or _quoted(scene, last, traces, patience)
        or _dated_by_its_end(scene, last, patience)
        or _queued(scene, last, patience)
        or _polled(scene, last, patience)
        or _said(scene, last, patience)
        or _listed_as_running(scene, last, patience)
    )


# What somebody, or a watching script, says of the log while its processes live: `unchanged for 3h`.
_UNCHANGED = regex(
    r"(?i)\b(?:unchanged|not (?:grown|changed|moved|advanced|been (?:written|updated|touched))|stale|silent"
    r"|no (?:new |further |more )?(?:log )?(?:lines?|output|writes?|steps?|progress))\b[^.;\d]{0,40}?"
    r"\b(?P<count>\d{1,5}(?:\.\d)?) ?(?P<unit>d|h|m|s)(?:ays?|rs?|ours?|ins?|inutes?|ecs?|econds?)?\b"
)
_ALIVE = regex(r"(?i)\b(?:alive|running|still up|state [RS]|R/S|util(?:ization|isation)?)\b")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def _said(scene: Scene, last: Line, patience: float) -> Sight | None:
    """The last word of a watcher's file that nothing had come for so long, of processes that live."""
    for reading in scene.readings:
        if reading.source.file == last.file:
            continue
        for line in reversed(reading.lines[-LINES_BEHIND:]):
            text = line.text[:400]
            if (told := _UNCHANGED.search(text)) is None or _ALIVE.search(text) is None:
                continue
            silence = float(told["count"]) * _SECONDS[told["unit"].lower()]
            if silence > patience:
                return Sight(line, f"nothing had come for {silence:.0f} s when somebody looked")
            break
    return None


# A row of a platform's own list of jobs and tasks, and what tells when it was asked.
_STATE = regex(r"^\s*[\w./-]{1,120}\s+(?:RUNNING|Running)(?=\s|$)")
_ASKED = regex(r"(?i)\b(?:captured|taken|as of|asked|queried|printed|fetched)\b")


def _listed_as_running(scene: Scene, last: Line, patience: float) -> Sight | None:
    """A list that calls the job running, and tells when it was made and by the log's clock when it began."""
    begun = min((time for time in scene.job_times()), default=None)
    if begun is None:
        return None
    for reading in scene.readings:
        if reading.source.file == last.file or len(reading.lines) > LINES_BEHIND:
            continue
        row = next((line for line in reading.lines if _STATE.match(line.text[:400])), None)
        asked = [line for line in reading.lines if _ASKED.search(line.text[:400])]
        if row is None or not asked:
            continue
        now = max((now for line in asked for now in clocks(line.text[:400])), default=None)
        told = [at for line in reading.lines if line not in asked for at in clocks(line.text[:400])]
        if now is None or not any(abs((at - naive(begun)).total_seconds()) < QUARTER for at in told):
            continue
        if (silence := (now - naive(last.time or 0.0)).total_seconds()) > patience:
            return Sight(row, f"it was listed as running {silence:.0f} s after the last step")
    return None


def naive(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC).replace(tzinfo=None)


def is_zone(silence: float) -> bool:
    """Whether a difference may be one of two zones alone, and the clocks show the same moment."""
    return abs(silence - round(silence / QUARTER) * QUARTER) <= QUARTER_REST and silence < 14 * 3600.0


def _looked(scene: Scene, last: Line, patience: float) -> Sight | None:
    """Behind the last step, a line that tells what time it was when somebody looked."""
    behind = [line for line in scene.lines(last.file) if line.number > last.number and line.text.strip()]
    for line in behind if len(behind) <= LINES_BEHIND else ():
        text = line.text[:400]
        if _PRESENT.search(text) is None:
            continue
        for now in clocks(text):
            silence = (now - naive(last.time or 0.0)).total_seconds()
            if silence > patience and not is_zone(silence):
                return Sight(line, f"{silence:.0f} s after the last step somebody looked: nothing had come")
    return None


def _listed(scene: Scene, last: Line, patience: float) -> Sight | None:
    """A list of files with the last change of this log, far before the clock of whoever listed them."""
    name = last.file.rsplit("/", 1)[-1]
    for reading in scene.readings:
        rows = [
            (line, row)
            for line in reading.lines
            if name in line.text
            and (row := _LISTED.match(line.text[:600]) or _LISTED_TODAY.match(line.text[:600])) is not None
        ]
        named = [(line, row) for line, row in rows if row["file"].rsplit("/", 1)[-1] == name]
        named = [(line, row) for line, row in named if last.file.endswith(row["file"])] or named
        if not named:
            continue
        now = max((now for line in reading.lines for now in told_now(line)), default=None)
        line, row = named[-1]
        if now is None:
            continue
        day = row.groupdict().get("day")
        changed = _of_year(f"{day} {row['clock']}", now) if day else _of_today(row["clock"], now)
        if changed is None:
            continue
        if (silence := (now - changed).total_seconds()) > patience:
            return Sight(line, f"the log had not grown for {silence:.0f} s when somebody looked")
    return None


LEAST_TAIL = 12  # characters of a log's last line that are quoted nowhere by chance


def _tailed(scene: Scene, last: Line, patience: float) -> Sight | None:
    """The log's last line as somebody saw it (`tail`), beside what time it was."""
    end = next((line.text.strip() for line in reversed(scene.lines(last.file)) if line.text.strip()), "")
    for reading in scene.readings if len(end) >= LEAST_TAIL else ():
        if reading.source.file == last.file or len(reading.lines) > LINES_BEHIND:
            continue
        seen = [line for line in reading.lines if line.text.strip() == end]
        now = max((now for line in reading.lines if line not in seen for now in told_now(line)), default=None)
        if not seen or now is None:
            continue
        silence = (now - naive(last.time or 0.0)).total_seconds()
        if silence > patience and not is_zone(silence):
            return Sight(seen[-1], f"still the last line {silence:.0f} s after the last step")
    return None


def _quoted(scene: Scene, last: Line, traces: Sequence[Trace], patience: float) -> Sight | None:
    """The last step itself, as somebody saw it in a log that dates none of its own, beside what time it was.

    `kubectl logs --timestamps --tail=1` dates the line with which the log of a pod ends.
    """
    lines = scene.lines(last.file)
    if len(lines) > LINES_BEHIND:
        return None
    quoted = [trace.last.step for trace in traces if trace.last.line == last]
    form = without_digits(last.message[:QUOTED_WIDTH])
    is_quoted = any(
        trace.file != last.file
        and trace.last.step in quoted
        and without_digits(trace.last.line.message[:QUOTED_WIDTH]) == form
        for trace in traces
    )
    now = max((now for line in lines if line is not last for now in told_now(line)), default=None)
    if not is_quoted or now is None:
        return None
    silence = (now - naive(last.time or 0.0)).total_seconds()
    if silence > patience and not is_zone(silence):
        return Sight(last, f"still the last line of a log {silence:.0f} s after it was written")
    return None


QUOTED_WIDTH = 24  # of a message that somebody quotes, and whose end he may have cut off


def told_now(line: Line) -> Iterator[datetime]:
    """The clocks of a line that tells of the present, as `date` does; not of files that are listed."""
    if _PRESENT.search(line.text[:400]) is not None and _LISTED.match(line.text[:600]) is None:
        yield from clocks(line.text[:400])
    yield from local_dates(line.text.strip())


def _of_year(stated: str, now: datetime) -> datetime | None:
    """A time without a year, in the last one before `now`."""
    for year in (now.year, now.year - 1):
        try:
            found = datetime.strptime(f"{year} {' '.join(stated.split())}", "%Y %b %d %H:%M")
        except ValueError:
            continue
        if found <= now + timedelta(days=1):
            return found
    return None


def _of_today(clock: str, now: datetime) -> datetime | None:
    """A time without a day: the last one before `now`."""
    hour, minute, *second = map(int, clock.split(":"))
    if hour > 23:
        return None
    found = now.replace(hour=hour, minute=minute, second=second[0] if second else 0)
    return found if found <= now else found - timedelta(days=1)


# Who is there when somebody looks: `kubectl get pods`, `ps`, GPUs in use.
_THERE = regex(
    r"\b(?:Running|RUNNING)\b|^\s*\d{1,8} +(?:\S+ +)?[RSD][lsLN<+]{0,4} +[\d:-]{5,12}\b"
    r"|^\s*\d{1,3}, +\d{1,3} ?%, "
)


def _dated_by_its_end(scene: Scene, last: Line, patience: float) -> Sight | None:
    """The time of the log's last line, as somebody saw it beside a later clock, while the job was there."""
    ends = [line.time for line in scene.lines(last.file) if line.time is not None]
    end = naive(max(ends))
    for reading in scene.readings:
        if reading.source.file == last.file or len(reading.lines) > LINES_BEHIND:
            continue
        now = max((now for line in reading.lines for now in told_now(line)), default=None)
        if now is None or (silence := (now - end).total_seconds()) <= patience or is_zone(silence):
            continue
        seen = [
            line
            for line in reading.lines
            if any(abs((at - end).total_seconds()) <= 1.0 for at in clocks(line.text[:400]))
        ]
        if seen and any(_THERE.search(line.text[:300]) for line in reading.lines):
            return Sight(seen[-1], f"still the last line of the log {silence:.0f} s after it was written")
    return None


def _queued(scene: Scene, last: Line, patience: float) -> Sight | None:
    """A process, or a job, that has run for far longer than from the log's first time to its last step."""
    begun = min((time for time in scene.job_times()), default=None)
    if begun is None:
        return None
    stepped = (last.time or 0.0) - begun
    for line, elapsed in running(scene):
        if elapsed - stepped > max(patience, stepped):
            return Sight(line, f"it runs for {elapsed:.0f} s, and its steps ended after {stepped:.0f} s")
    return None


def _polled(scene: Scene, last: Line, patience: float) -> Sight | None:
    """A GPU that is still busy, and holds memory, long after the last step."""
    for reading in scene.readings:
        if reading.source.role not in (SourceRole.HARDWARE, SourceRole.METRICS):
            continue
        dated = [line for line in reading.lines if line.time is not None]
        if not dated or (silence := (dated[-1].time or 0.0) - (last.time or 0.0)) <= patience:
            continue
        late = [line for line in dated if (line.time or 0.0) > (last.time or 0.0) + patience]
        for line in reversed(late):
            text = line.text[:600]
            busy = [int(value) for value in _PERCENT.findall(text)]
            used = [int(value) for value in _MIB.findall(text)]
            if busy and used and max(busy) >= BUSY and used[0] >= LEAST_MIB:
                return Sight(line, f"its GPUs are busy {silence:.0f} s after the last step")
    return None
