"""Stack dumps in text: py-spy, Python's faulthandler, and gdb, alone in a file or among log lines.

Formats: py-spy's `dump` (src/dump.rs), CPython's Python/traceback.c (`Thread 0x… (most recent call first)`),
gdb's `bt` and `thread apply all bt` with or without its Python frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from logtriage.model import Line
from logtriage.regex import regex


@dataclass(frozen=True, slots=True)
class Spot:
    """One frame of a stack; `number` is its line in the source file, `line` where the dump says it."""

    function: str
    path: str
    number: int | None
    line: Line

    @property
    def told(self) -> str:
        short = "/".join(self.path.split("/")[-2:])
        at = f" ({short}:{self.number})" if self.number else f" ({short})" if short else ""
        return f"{self.function}{at}"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread with its frames, innermost first; `ident` is its number as the tool prints it."""

    ident: str
    name: str
    spots: tuple[Spot, ...]
    line: Line


@dataclass(frozen=True, slots=True)
class StackDump:
    """All threads of one process at one moment. What the dump does not tell is None."""

    file: str
    rank: int | None
    local_rank: int | None
    host: str | None
    pid: int | None
    command: str
    threads: tuple[Thread, ...]

    @property
    def first_line(self) -> int:
        return self.threads[0].line.number

    @property
    def last_line(self) -> int:
        last = self.threads[-1]
        return last.spots[-1].line.number if last.spots else last.line.number


MOST_THREADS = 20_000  # of one file
MOST_SPOTS = 400  # of one thread

_PROCESS = regex(r"Process (?P<pid>\d{1,10}): (?P<command>.*)")
_SPY_THREAD = regex(r'Thread (?P<id>0x[0-9A-Fa-f]+|\d+) \((?:active|idle)[\w+]*\)(?:: "(?P<name>.*)")?')
_FAULT_THREAD = regex(
    r"(?:Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>.*?)\])? \(most recent call first\)"
)
_GDB_THREAD = regex(
    r'Thread (?P<id>\d+) \((?:Thread 0x[0-9a-f]+ )?\(?LWP (?P<lwp>\d+)\)?(?: "(?P<name>.*?)")?'
)
_HEADS = regex(r"Process \d|Thread (?:0x)?[0-9A-Fa-f]|Current thread 0x|#0 ")
_PARTS = regex(r"Timeout \(\d+:\d\d:\d\d|Fatal Python error: |Stack dump")

_SPY_SPOT = regex(r"(?P<function>\S.*?) \((?P<path>[^()]*?)(?::(?P<number>\d+))?\)$")
_FAULT_SPOT = regex(r'File "(?P<path>[^"]*)", line (?P<number>\d+|\?\?\?),? in (?P<function>.+)')
_GDB_SPOT = regex(
    r"#\d+ +(?:0x[0-9a-f]+ in )?(?P<function>[^\s(][^(]*?) ?\(.*?\)"
    r"(?: at (?P<path>\S+?):(?P<number>\d+)| from (?P<library>\S+))?$"
)
_GDB_PYTHON = regex(
    r"#\d+ +.*?Frame 0x[0-9a-f]+, for file (?P<path>.+?), line (?P<number>\d+), in (?P<function>[\w.<>]+)"
)
_RANK = regex(r"(?i)\brank[ =:_#-]{0,3}(?P<rank>\d{1,7})\b")
_LOCAL_RANK = regex(r"--local[-_]rank[= ](\d{1,5})\b")
_NOT_A_FRAME = regex(r"(?:Arguments|Locals):$|\w+: ")


@dataclass(slots=True)
class _Growing:
    """A process's dump in the making."""

    rank: int | None
    host: str | None
    pid: int | None = None
    command: str = ""
    threads: list[Thread] = field(default_factory=list)
    head: tuple[str, str, Line] | None = None  # ident, name and line of the open thread
    form: str = ""
    spots: list[Spot] = field(default_factory=list)

    def close_thread(self) -> None:
        if self.head is not None and (self.spots or self.form == "fault"):
            self.threads.append(Thread(self.head[0], self.head[1], tuple(self.spots), self.head[2]))
        self.head, self.spots = None, []


def parse_stacks(lines: Iterable[Line]) -> Iterator[StackDump]:
    """The dumps in the lines of one file, in order. Lines of several ranks may be interleaved."""
    growing: dict[int | None, _Growing] = {}
    named: dict[int | None, int] = {}  # the rank that a line shortly before a dump names
    count = 0
    for line in lines:
        text = line.message.strip()
        if not text or count > MOST_THREADS:
            continue
        current = growing.get(line.rank)
        if (head := _HEADS.match(text)) is not None or _PARTS.match(text):
            started = _head(text, line, current if head else None)
            if started is not None:
                ident, name, form, pid, command = started
                again = current is not None and any(ident == each.ident for each in _all(current))
                if current is None or form == "process" or (again and ident):
                    if current is not None:
                        yield from _finished(current, line.rank)
                    # gdb prints no process, several processes in a file are told apart by what repeats
                    current = growing[line.rank] = _Growing(
                        line.rank if line.rank is not None else named.pop(line.rank, None), line.host
                    )
                current.close_thread()
                if pid is not None and (form == "process" or current.pid is None or ident == "1"):
                    current.pid = pid
                current.command = command or current.command
                if form != "process":
                    count += 1
                    current.head, current.form = (ident, name, line), form
                    if form == "gdb" and text.startswith("#0"):
                        _add(current, text, line)
                continue
            if not head and current is not None:
                yield from _finished(current, line.rank)
                del growing[line.rank]
                continue
        if current is not None and current.head is not None:
            if _add(current, text, line) or len(current.spots) >= MOST_SPOTS or _belongs(current, text):
                continue
            current.close_thread()
        if len(text) < 200 and (told := _RANK.search(text)) is not None:
            if current is not None and line.rank is None and current.threads:
                yield from _finished(current, line.rank)
                del growing[line.rank]
            named[line.rank] = int(told["rank"])
    for rank, current in growing.items():
        yield from _finished(current, rank)


def _all(current: _Growing) -> list[Thread]:
    if current.head is None:
        return current.threads
    return [*current.threads, Thread(current.head[0], "", (), current.head[2])]


def _head(text: str, line: Line, current: _Growing | None) -> tuple[str, str, str, int | None, str] | None:
    """(ident, name, form, pid, command) of a line that begins a process or a thread."""
    if found := _PROCESS.match(text):
        return "", "", "process", int(found["pid"]), found["command"][:500]
    if found := _SPY_THREAD.match(text):
        return found["id"], found["name"] or "", "spy", None, ""
    if found := _FAULT_THREAD.match(text):
        return found["id"], found["name"] or "", "fault", line.pid, ""
    if found := _GDB_THREAD.match(text):
        return found["id"], found["name"] or "", "gdb", int(found["lwp"]), ""
    if text.startswith("#0 ") and (current is None or current.head is None or current.spots):
        return "1" if current is None else "", "", "gdb", None, ""  # `bt` of one thread has no heading
    return None


def _add(current: _Growing, text: str, line: Line) -> bool:
    """Take a line as a frame of the open thread, if it is one."""
    if len(current.spots) >= MOST_SPOTS or len(text) > 2000:
        return False
    found = _FAULT_SPOT.match(text)
    if found is None and current.form == "gdb":
        found = _GDB_PYTHON.match(text) or _GDB_SPOT.match(text)
    if found is None and current.form == "spy" and not _NOT_A_FRAME.match(text):
        found = _SPY_SPOT.match(text)
    if found is None:
        return False
    told = found.groupdict()
    number = told.get("number") or ""
    current.spots.append(
        Spot(
            found["function"].strip()[:300],
            (told.get("path") or told.get("library") or "")[:500],
            int(number) if number.isdecimal() and len(number) < 10 else None,
            line,
        )
    )
    return True


def _belongs(current: _Growing, text: str) -> bool:
    """Lines inside a thread that are no frames: values of variables, source lines, notes."""
    if current.form == "spy":
        return _NOT_A_FRAME.match(text) is not None
    if current.form == "gdb":
        return not text.startswith(("[Inferior", "Detaching", "Attaching"))
    return text.startswith(("...", "<no Python frame>"))


def _finished(current: _Growing, rank: int | None) -> Iterator[StackDump]:
    current.close_thread()
    if any(thread.spots for thread in current.threads):
        local = _LOCAL_RANK.search(current.command)
        first = current.threads[0].line
        yield StackDump(
            file=first.file,
            rank=current.rank if current.rank is not None else rank,
            local_rank=int(local[1]) if local else None,
            host=current.host,
            pid=current.pid,
            command=current.command,
            threads=tuple(current.threads),
        )
