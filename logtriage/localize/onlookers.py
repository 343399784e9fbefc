"""What somebody saw beside the logs while the job ran: `ps` of its processes, `squeue`, nvidia-smi, `ls`.

A log that ends among regular steps tells of a healthy job, unless a look at it much later shows its processes
still alive, a log that has not grown for long, or its GPUs busy at the power of idle ones: they spin in a
collective that never ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from logtriage.localize.power_samples import GpuPower, sampled_power
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_ELAPSED = regex(r"(?:(?P<days>\d{1,3})-)?(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)")
# tqdm's `[0:32:56<3:30:03, 8.09s/it]`: the time since the first step.
_BAR = regex(r"\[(?P<elapsed>(?:\d{1,3}:)?\d{1,2}:\d\d)<")
LATER_SECONDS = 3600.0  # start-up before the first step can take long: so much, and as long as the steps took

_SMI_ROW = regex(
    r"(?P<watts>\d{1,4})W */ *(?P<most>\d{2,4})W *\| *(?P<mib>\d{1,7})MiB */ *\d{1,7}MiB *\| *"
    r"(?P<busy>\d{1,3})%"
)
BUSY = 90  # per cent
IDLE_POWER = 0.35  # of the power that the GPU may draw, or drew before: training draws more than half
LEAST_MIB = 1024  # used by a process that trains
# Where nothing tells what a GPU may draw: one with so much memory in use may draw 300 W and more.
LARGE_MIB = 24 << 10
IDLE_WATTS = 150.0
SAMPLES = 3  # of a GPU that is asked again and again, the last ones
DROPPED = 0.7
_AMOUNT = regex(r" *(?P<amount>\d{1,7}(?:\.\d{1,4})?) *(?:%|W|MiB)? *")


@dataclass(frozen=True, slots=True)
class Sight:
    """A line that shows that the job stands still, and why it does."""

    line: Line
    why: str


def standing(scene: Scene, last: Line) -> Sight | None:
    """What shows that the job stood still after its last step, of lines that are no output of its own."""
    return _alive(scene, last) or _ungrown(scene, last) or _spinning(scene, last)


def _alive(scene: Scene, last: Line) -> Sight | None:
    """A process, or a job, that has run for far longer than its progress bar."""
    bar = _BAR.search(last.text[:600])
    if bar is None:
        return None
    stepped = _seconds(bar["elapsed"])
    for line, elapsed in running(scene):
        if elapsed - stepped > max(LATER_SECONDS, stepped):
            return Sight(line, f"it runs for {elapsed:.0f} s, and its steps ended after {stepped:.0f} s")
    return None


# `ps -C python -o pid,stat,etime,args --no-headers`: the columns of the rows below it.
_COLUMNS = regex(r"\bps\b[^|\n]{0,120}? -[a-zA-Z]{0,3}o ?(?P<columns>[a-z]{2,8}(?:[=:,][\w=:,]{0,120})?)")


def running(scene: Scene) -> Iterator[tuple[Line, float]]:
    """Rows of `ps` (with ELAPSED) and `squeue` of what still runs, with its seconds since the start."""
    for reading in scene.readings:
        column, state, is_bare = -1, -1, False
        for line in reading.lines:
            asked = _COLUMNS.search(line.text[:300]) if "etime" in line.text[:300] else None
            if asked is not None:
                names = [name.partition(":")[0].partition("=")[0] for name in asked["columns"].split(",")]
                column, state, is_bare = names.index("etime") if "etime" in names else -1, -1, True
                continue
            cells = line.text.split()
            if is_bare and not (column < len(cells) and _ELAPSED.fullmatch(cells[column])):
                column, is_bare = -1, False  # the rows end, or begin with a heading
            head = "ELAPSED" in cells or ("JOBID" in cells and "TIME" in cells)
            if head:
                column = cells.index("ELAPSED" if "ELAPSED" in cells else "TIME")
                state = cells.index("ST") if "ST" in cells else -1
            elif 0 <= column < len(cells) and (state < 0 or cells[state] == "R"):
                yield line, _seconds(cells[column])


def _seconds(clock: str) -> float:
    found = _ELAPSED.fullmatch(clock)
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return 86_400.0 * days + 3_600.0 * hours + 60.0 * minutes + seconds


# `ls -l --full-time`, and `stat`; both in the clock of the machine, as `date` beside them.
_CHANGED = regex(
    r"^\s*-[rwxsStT-]{9}\S? .{1,200} (?P<listed>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d{1,9} [+-]\d{4} "
    r"(?P<file>\S{1,300})"
    r"|^\s*Modify: (?P<told>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
    # `stat -c '%n %y'`, and `stat -c %y` of a file that it does not name
    r"|^\s*(?:(?P<named>\S{1,300}) )?(?P<stated>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d{1,9} [+-]\d{4}\s*$"
    # `stat -c '%y %n'`
    r"|^\s*(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.\d{1,9} [+-]\d{4} (?P<behind>\S{1,300})\s*$"
)
# The same in words: `last write of train.out: 2024-06-05T13:36:11`, `train.out was last modified …`.
_WRITTEN = regex(
    r"(?i)(?:(?P<whose>[\w./-]{1,200}\.\w{1,8})[:,]? (?:was |is )?)?"
    r"\b(?:last (?:write|change|modification|update|written|modified|changed|updated|touched)|mtime)\b"
    r"(?: time)?(?: (?:of|to|in|for))?[ :=]{0,3}(?:(?P<named>[\w./-]{1,200}\.\w{1,8})[ :=,]{1,3})?"
    r"(?:(?:at|on|was|is)[ :]{1,2})?(?P<stated>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?)"
)
_STAT_FILE = regex(r"^\s*File: [\"'‘]?(?P<file>[^\s\"'’]{1,300})")
_NOW = regex(
    r"(?P<iso>\b\d{4}-\d\d-\d\d[T _]\d\d:\d\d(?::\d\d)?)"
    r"|\b(?:(?P<day>[A-Z][a-z]{2} +\d{1,2})|(?P<british>\d{1,2} [A-Z][a-z]{2})) "
    r"(?P<clock>\d\d:\d\d:\d\d)(?: (?P<half>[AP]M))?"
    r" (?:\S{1,6} )?(?P<year>\d{4})\b"
)
_PACE = regex(r"[ ,](?P<seconds>\d{1,5}(?:\.\d+)?)s/it\b")
LONGEST_PACES = 12.0  # as of other silences (outcome.HANG_INTERVALS)


def _ungrown(scene: Scene, last: Line) -> Sight | None:
    """The last change of the log that ends with the last step, seen long after it."""
    pace = _PACE.search(last.text[:600])
    patience = max(LATER_SECONDS, LONGEST_PACES * float(pace["seconds"]) if pace else 0.0)
    for reading in scene.readings:
        if reading.source.file == last.file:
            continue
        changed = _change(reading.lines, last.file.rsplit("/", 1)[-1])
        if changed is None:
            continue
        line, at = changed
        now = max((now for each in reading.lines for now in _own_clocks(each)), default=at)
        now = max(now, _glanced(reading.lines, at), _counted(reading.lines, line, at))
        if (silence := (now - at).total_seconds()) > patience:
            return Sight(line, f"the log had not grown for {silence:.0f} s when somebody looked")
    return None


def _change(lines: Sequence[Line], log: str) -> tuple[Line, datetime] | None:
    """Where a look tells when the log of that name changed last, and when it did."""
    named = ""
    for line in lines:
        text = line.text[:800]
        if (about := _STAT_FILE.search(text)) is not None:
            named = about["file"]
        elif (told := _CHANGED.search(text)) is not None:
            name = told["file"] or told["named"] or told["behind"] or named
            is_nameless = told["stated"] and not name and len(lines) <= GLANCE_LINES
            if name.rsplit("/", 1)[-1] == log or is_nameless:
                for at in clocks(told["listed"] or told["told"] or told["stated"] or told["at"]):
                    return line, at
        elif len(lines) <= GLANCE_LINES and (told := _WRITTEN.search(text)) is not None:
            name = told["named"] or told["whose"] or log
            for at in clocks(told["stated"]) if name.rsplit("/", 1)[-1] == log else ():
                return line, at
    return None


GLANCE_LINES = 60  # of a file that holds what somebody saw, and no log
_UPTIME = regex(r"^\s*(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d) up \d")
_EPOCH = regex(r"^\s*(?P<seconds>1\d{9})\s*$")
_ZONE = regex(r" (?P<sign>[+-])(?P<hours>\d\d)(?P<minutes>\d\d)\s*$")


def _glanced(lines: Sequence[Line], at: datetime) -> datetime:
    """The latest clock of `uptime`, which tells no day: the first one after the log's last change."""
    seen = [
        at.replace(hour=int(told["hour"]), minute=int(told["minute"]), second=int(told["second"]))
        for line in lines[:GLANCE_LINES]
        if (told := _UPTIME.match(line.text[:40])) is not None
    ]
    return max((clock + timedelta(days=clock < at) for clock in seen), default=at)


def _counted(lines: Sequence[Line], changed: Line, at: datetime) -> datetime:
    """The time of `date +%s`, by the clock and zone in which the log's change is told."""
    zone = _ZONE.search(changed.text[:800])
    told = [
        int(found["seconds"])
        for above, line in pairwise(lines[:GLANCE_LINES])
        if "%s" in above.text[:400] and (found := _EPOCH.match(line.text[:40])) is not None
    ]
    if zone is None or not told:
        return at
    ahead = timedelta(hours=int(zone["hours"]), minutes=int(zone["minutes"]))
    utc = datetime.fromtimestamp(max(told), UTC).replace(tzinfo=None)
    return utc + ahead if zone["sign"] == "+" else utc - ahead


_OF_A_FILE = regex(r"^\s*(?:[dl-][rwxsStT-]{9}|(?:Access|Modify|Change| ?Birth): )")


def _own_clocks(line: Line) -> Iterator[datetime]:
    """The times that a line tells of itself: those of files that are listed say nothing of now."""
    if _OF_A_FILE.match(line.text[:40]) is None:
        yield from clocks(line.text[:400])


def clocks(text: str) -> Iterator[datetime]:
    """The times in a text as its machine's clock showed them, whatever its zone."""
    for told in _NOW.finditer(text):
        half = told["half"]
        day = told["day"] or " ".join(reversed((told["british"] or "").split()))
        stated = told["iso"] or " ".join(filter(None, (day, told["clock"], half, told["year"])))
        form = "%b %d %I:%M:%S %p %Y" if half else "%b %d %H:%M:%S %Y"
        try:
            if told["iso"]:
                yield datetime.fromisoformat(stated.replace("_", "T"))
            else:
                yield datetime.strptime(stated, form)
        except ValueError:
            continue


def _spinning(scene: Scene, last: Line) -> Sight | None:
    """The first of a node's GPUs, all of which are busy at the power of idle ones."""
    for reading in scene.readings:
        lines = reading.lines
        sampled = sampled_power(lines) if reading.source.file != last.file else []
        for gpus in (_table(lines), _monitored(lines), _queried(lines), sampled):
            if len(gpus) > 1 and all(each.busy >= BUSY and each.share < IDLE_POWER for each in gpus):
                first = gpus[0]
                told = f"all GPUs are busy to {first.busy} % at the power of idle ones: they wait"
                return Sight(first.line, told)
    return None


def _table(lines: Sequence[Line]) -> list[GpuPower]:
    """The GPUs in use of nvidia-smi's table."""
    return [
        GpuPower(line, int(row["busy"]), int(row["watts"]) / int(row["most"]))
        for line in lines
        if "MiB" in line.text
        and (row := _SMI_ROW.search(line.text[:400])) is not None
        and int(row["mib"]) >= LEAST_MIB
    ]


def _monitored(lines: Sequence[Line]) -> list[GpuPower]:
    """The last sample of each GPU of `nvidia-smi dmon`, against the most power that it drew."""
    columns: list[str] = []
    most: dict[str, float] = {}
    newest: dict[str, tuple[Line, int, float]] = {}
    for line in lines:
        cells = line.text.split()
        if cells[:1] == ["#"] and {"gpu", "pwr", "sm"} <= set(cells):
            columns = cells[1:]
        elif columns and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            if row["pwr"].isdecimal() and row["sm"].isdecimal():
                watts = float(row["pwr"])
                most[row["gpu"]] = max(most.get(row["gpu"], 0.0), watts)
                newest[row["gpu"]] = (line, int(row["sm"]), watts)
    return [GpuPower(line, busy, watts / max(most[gpu], 1.0)) for gpu, (line, busy, watts) in newest.items()]


def _queried(lines: Sequence[Line]) -> list[GpuPower]:
    """The last samples of each GPU of `nvidia-smi --query-gpu=… --format=csv`, columns in any order."""
    columns: list[str] = []
    samples: dict[str, list[GpuPower]] = {}
    most: dict[str, float] = {}
    rows = 0
    for line in lines:
        cells = line.text[:1000].split(",")
        if len(cells) < 3:
            continue
        names = [cell.split("[", 1)[0].strip() for cell in cells]
        if "utilization.gpu" in names and any(name.startswith("power.draw") for name in names):
            columns, rows = ["power.draw" if name.startswith("power.draw") else name for name in names], 0
        elif len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            busy, watts = _amount(row["utilization.gpu"]), _amount(row["power.draw"])
            if busy is None or watts is None:
                continue
            which = next((row[name].strip() for name in _NAMES if name in row), str(rows))
            rows += 1
            most[which] = max(most.get(which, 0.0), watts)
            # Small models never draw much: a GPU of which it is known has to draw less than before.
            as_ever = len(samples.get(which, ())) >= SAMPLES and watts > DROPPED * most[which]
            share = 1.0 if as_ever else _share(row, watts)
            samples.setdefault(which, []).append(GpuPower(line, int(busy), share))
    return [max(own[-SAMPLES:], key=lambda each: (each.busy < BUSY, each.share)) for own in samples.values()]


_NAMES = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")


def _share(row: dict[str, str], watts: float) -> float:
    """Of the power that the GPU may draw; where that is not told, more than all unless it looks idle."""
    limit = next((known for name, cell in row.items() if "limit" in name and (known := _amount(cell))), None)
    used = _amount(row.get("memory.used", "")) or 0.0
    if limit is not None:
        return watts / limit if used >= LEAST_MIB or "memory.used" not in row else 1.0
    return 0.0 if used > LARGE_MIB and watts < IDLE_WATTS else 1.0


def _amount(cell: str) -> float | None:
    found = _AMOUNT.fullmatch(cell[:40])
    return float(found["amount"]) if found else None
