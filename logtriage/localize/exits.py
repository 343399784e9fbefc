"""How processes ended, as launchers, shells and schedulers report it, and what a code proves."""

from __future__ import annotations

import bisect
import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace

from logtriage.localize.own_codes import is_own_code
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark

NATIVE_SIGNALS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}


@dataclass(frozen=True, slots=True)
class Exit:
    """One process's end. `code` is as Python's subprocess counts: negative for a signal."""

    line: Line
    code: int
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    claimed_root: bool = False  # the launcher named it the first observed failure (often a victim)
    with_its_step: bool = False  # Slurm ended it after it had cancelled the job or the step
    beside: Line | None = None  # says the same of that process, in a number

    @property
    def signal(self) -> int | None:
        return -self.code if self.code < 0 else None

    @property
    def failure_type(self) -> str | None:
        """The type that the code alone supports; None where it proves nothing (1, 2, SIGTERM…)."""
        if self.signal is None or self.with_its_step:
            return None
        if self.signal in NATIVE_SIGNALS:
            return "process.native_crash"
        if self.signal in (signal.SIGKILL, signal.SIGHUP):
            return "process.killed"
        if self.signal == signal.SIGINT:
            return "scheduler.cancelled"
        if self.signal in (signal.SIGXCPU, signal.SIGXFSZ):
            return "host.resource_limit"
        return None


# Windows ends a process with an NTSTATUS: access violation, misalignment, stack overflow, heap corruption,
# fast fail, illegal instruction, division by zero, Ctrl-C ([MS-ERREF] 2.3.1).
_NTSTATUS = {
    0xC0000005: signal.SIGSEGV, 0x80000002: signal.SIGBUS, 0xC00000FD: signal.SIGSEGV,
    0xC0000374: signal.SIGABRT, 0xC0000409: signal.SIGABRT, 0xC000001D: signal.SIGILL,
    0xC0000094: signal.SIGFPE, 0xC000013A: signal.SIGINT,
}  # fmt: skip


def decode(code: int) -> int:
    """A shell's or container's code (128 + n, or n modulo 256) as a negative signal number.

    137 is SIGKILL, 139 SIGSEGV, 143 SIGTERM; 247 is -9 seen through an 8-bit exit status; -1073741819 is
    Windows' access violation. Codes that are no signal are returned as they are.
    """
    if (status := code & 0xFFFFFFFF) in _NTSTATUS:
        return -int(_NTSTATUS[status])
    if 128 < code < 128 + 65 and _is_signal(code - 128):
        return -(code - 128)
    if 192 < code < 256 and _is_signal(256 - code) and 256 - code in (6, 9, 11, 15):
        return -(256 - code)
    return code


def _is_signal(number: int) -> bool:
    return number in signal.Signals.__members__.values() or number in {each.value for each in signal.Signals}


def describe(code: int) -> str:
    """`SIGKILL (exit code -9)` or `exit code 1`."""
    if code < 0 and _is_signal(-code):
        return f"{signal.Signals(-code).name} (exit code {code})"
    return f"exit code {code}"


_FIELD = regex(r"^\s*(time|host|rank|exitcode|error_file|traceback)\s*:\s*(.*)$")
_ENTRY = regex(r"^\s*\[(\d+)\]:\s*$")
# The same on one line: `[1]: rank : 9 (local_rank: 1) exitcode : 1 (pid: 32)`
_ROW = regex(
    r"\[\d{1,5}\]:? .{0,80}?(?:\bhost ?: (?P<host>[\w.-]{1,200}),? .{0,20}?)?\brank ?: (?P<rank>\d{1,6}) "
    r"\(local_rank: (?P<local>\d{1,4})\),? .{0,40}?\bexitcode ?: (?P<code>-?\d{1,4}) "
    r"\(pid: (?P<pid>\d{1,9})\)"
)
_ROOT = regex(r"Root Cause \(first observed failure\)")
_BLOCK = regex(
    r"^(?P<label>[^\s:]\S{0,100} (?:\S{1,60} ){0,2})?"
    r"(?:Failures|Root Cause \(first observed failure\)):\s*$"
)


def gather_exits(scene: Scene) -> list[Exit]:
    """Exits from rule hits that mark one, and from torchelastic's `Failures:` blocks."""
    exits: list[Exit] = []
    told = [
        sign
        for sign in scene.causes
        if sign.rule.failure_type in ("process.killed", "process.native_crash")
        and (sign.hit.capture("exitcode") or sign.hit.capture("signal"))
        # What `spawn` raises of a child that a signal ended tells which one it was.
        and (sign.raised is None or sign.hit.capture("local_rank"))
    ]
    for sign in (*scene.marked(Mark.EXIT), *told):
        code = _signed(sign.hit.capture("exitcode"))
        if code is None:
            name = sign.hit.capture("signal")
            number = _signal_number(name) if name else None
            if number is None:
                continue
            code = -number
        said = _OF_A_NODE.sub("", sign.text, count=1)
        above = _process_above(sign.line, scene) if sign.rule.id.startswith("mpi.rank_") else {}
        rank = sign.hit.capture("rank") or above.get("rank")
        exits.append(
            Exit(
                line=sign.line,
                # mp.spawn tells a signal by its name: what it calls a code is the process's own.
                code=code if is_own_code(sign.line) else decode(code),
                rank=_signed(rank) if rank else None if above else _named(_RANK, said),
                local_rank=_signed(sign.hit.capture("local_rank")),
                host=sign.hit.capture("host")
                or sign.hit.capture("node")
                or above.get("host")
                or sign.line.host,
                pid=_signed(pid)
                if (pid := sign.hit.capture("pid") or above.get("pid"))
                else _named(_PID, said),
            )
        )
    for reading in scene.readings:
        exits += _failure_blocks(reading.lines)
    tasks = [each for reading in scene.readings for each in _tasks(reading.lines)]
    best: dict[tuple[str, int], Exit] = {}
    for each in exits:  # one line is one exit: the report that knows the rank
        known = best.get((each.line.file, each.line.number))
        if known is None or (known.rank is None and each.rank is not None):
            best[each.line.file, each.line.number] = each
        elif known.host is None and each.host is not None and each.rank in (None, known.rank):
            best[each.line.file, each.line.number] = replace(known, host=each.host)
    if any(each.local_rank is not None for each in exits) or _tasks_launch(scene):
        # Where a launcher speaks of local ranks, or a task's output of other ranks, srun's tasks are
        # launchers, one a node.
        tasks = [replace(each, rank=None) for each in tasks]
    named = {each.pid for each in best.values() if each.pid is not None and each.rank is not None}
    best = {  # a line that only repeats the signal of a process whose rank is told elsewhere adds nothing
        place: each
        for place, each in best.items()
        if each.rank is not None or each.local_rank is not None or each.pid not in named
    }
    # `local_rank: 5 (pid: 945)` is the `rank : 21 (local_rank: 5)` of the summary below it: no rank 5.
    summed = {(each.line.file, each.pid) for each in best.values() if each.rank is not None}
    best = {
        place: replace(each, local_rank=None)
        if each.rank is None and each.pid is not None and (each.line.file, each.pid) in summed
        else each
        for place, each in best.items()
    }
    told_by_tasks = {(each.line.file, each.line.number) for each in tasks}
    return [*(each for place, each in best.items() if place not in told_by_tasks), *tasks]


# Whose end a sentence reports, where its rule does not capture it: `Global rank 3 (PID 208868) exited …`.
_RANK = regex(r"(?i)\b(?:(?:global|process)[ _])?rank[ :=#]{1,2}(\d{1,6})\b(?! ?[-~])")
_OF_A_NODE = regex(r"\([\w.-]{1,80}, rank=\d{1,6}, pid=\d{1,9}[^()]{0,80}\)")  # SkyPilot's label
_PID = regex(r"(?i)\bpid[ :=]{1,2}(\d{1,9})\b")


# How Open MPI names who ended, on the line above the code or the signal: by its job and rank, or in words.
_ABOVE = regex(
    r"^[^\n]{0,80}?\b(?:Process name: \[(?:\[\d{1,9},\d{1,9}\]|[\w.-]{1,120}@\d{1,9}),(?P<named>\d{1,6})\]"
    r"|noticed that process rank (?P<rank>\d{1,6}) with PID (?P<pid>\d{1,9})"
    r"(?: on node (?P<host>[\w.-]{1,200}))? exited on\s*$)"
)


def _process_above(line: Line, scene: Scene) -> dict[str, str]:
    """The rank, and of what is told in words the host and the process, as they stand above a line."""
    lines = scene.lines(line.file)
    at = bisect.bisect_left(lines, line.number, key=lambda each: each.number)
    told = _ABOVE.match(lines[at - 1].text[:300]) if at > 0 else None
    if told is None:
        return {}
    found = {"rank": told["rank"] or told["named"], "host": told["host"], "pid": told["pid"]}
    return {name: value for name, value in found.items() if value is not None}


def _named(pattern: re.Pattern[str], text: str) -> int | None:
    found = {int(number) for number in pattern.findall(text[:1000])}
    return found.pop() if len(found) == 1 else None


_TASK_OF_RANK = regex(r" {0,5}(\d{1,6}): +\[rank(\d{1,6})\]:")


def _tasks_launch(scene: Scene) -> bool:
    return any(
        (label := _TASK_OF_RANK.match(line.text[:40])) is not None and int(label[1]) != int(label[2])
        for reading in scene.readings
        for line in reading.lines
    )


_TASKS = regex(
    r"srun: error: (?P<host>[\w.-]+): tasks? (?P<tasks>[\d,-]{1,400}): "
    r"(?P<how>Exited with exit code (?P<code>\d{1,3})|Killed|Terminated|Aborted|Segmentation fault|Bus error)"
)
SLURM_CANCELLED = regex(r"\*\*\* (?:JOB|STEP) [\w.+]{1,40}(?: ON \S{1,80})? CANCELLED AT ")
# `task 4 on host cn-3 exited with code 1`, `tasks 0-3 on cn-2 killed by signal 15`
_TASKS_ON = regex(
    r"\b(?:tasks?|ranks?) (?P<tasks>\d[\d,-]{0,400}) on (?:host |node )?(?P<host>[A-Za-z][\w.-]{0,100}) "
    r"(?:(?:was |were )?(?:killed|terminated|ended) (?:by|with|on) signal (?P<signal>\d{1,2})"
    r"|(?:exited|ended|failed|finished) with (?:exit )?(?:code|status) (?P<code>\d{1,3}))\b"
)
_HOW = {"Killed": -9, "Terminated": -15, "Aborted": -6, "Segmentation fault": -11, "Bus error": -7}
_ENDED = (-9, -15)  # how Slurm ends what is left of a step: SIGTERM, and after KillWait SIGKILL
MOST_TASKS = 4_096


def _tasks(lines: Iterable[Line]) -> Iterable[Exit]:
    """One exit for each task of `srun: error: gpu-3: tasks 4-7: Exited with exit code 1`."""
    cancelled = False
    for line in lines:
        cancelled = cancelled or ("CANCELLED" in line.text and bool(SLURM_CANCELLED.search(line.text[:400])))
        if "srun: error:" in line.text and (told := _TASKS.search(line.text[:1000])) is not None:
            code = decode(int(told["code"])) if told["code"] else _HOW[told["how"]]
        elif " on " in line.text and (told := _TASKS_ON.search(line.text[:1000])) is not None:
            code = decode(int(told["code"])) if told["code"] else -int(told["signal"])
        else:
            continue
        count, with_step = 0, cancelled and code in _ENDED
        for part in told["tasks"].split(","):
            first, _, last = part.partition("-")
            if not first.isdigit() or len(first) > 7 or (last and (not last.isdigit() or len(last) > 7)):
                continue
            for rank in range(int(first), min(int(last or first), int(first) + MOST_TASKS) + 1):
                count += 1
                if count <= MOST_TASKS:
                    yield Exit(line, code, rank, host=told["host"], with_its_step=with_step)


def _failure_blocks(lines: Iterable[Line]) -> Iterable[Exit]:
    entry: dict[str, tuple[str, Line]] = {}
    in_root = False
    started = False

    def finished() -> Iterable[Exit]:
        if "exitcode" in entry:
            text, line = entry["exitcode"]
            code = _signed(text.split()[0] if text.split() else None)
            if code is not None:
                rank, local = _two_numbers(entry.get("rank", ("", line))[0])
                pid = re.search(r"pid:\s*(\d+)", text)
                said = told[1] if (told := entry.get("traceback")) and told[0].startswith("Signal ") else None
                yield Exit(
                    line=said or line,  # says in words what the code says
                    code=code,
                    rank=rank,
                    local_rank=local,
                    host=entry["host"][0].strip() or None if "host" in entry else None,
                    pid=int(pid[1]) if pid else None,
                    claimed_root=in_root,
                    beside=line if said is not None else None,
                )

    label = ""  # of the pod or the machine, in front of each line of the block
    for line in lines:
        text = line.message
        if (("Failures:" in text) or ("Root Cause" in text)) and (block := _BLOCK.match(text[:400])):
            label = block["label"] or ""
        text = text.removeprefix(label)
        if "exitcode" in text and (row := _ROW.search(text[:1000])) is not None:
            code, rank, local, pid = (int(row[name]) for name in ("code", "rank", "local", "pid"))
            yield Exit(line, code, rank, local, row["host"], pid)
        elif _ENTRY.match(text):
            yield from finished()
            entry = {}
            started = True
        elif started and (found := _FIELD.match(text)):
            entry[found[1]] = (found[2], line)
        elif _ROOT.search(text):
            yield from finished()
            entry = {}
            in_root = started = True
        elif started and text.startswith("====="):
            yield from finished()
            entry, started, in_root = {}, False, False
    yield from finished()


def _two_numbers(text: str) -> tuple[int | None, int | None]:
    numbers = re.findall(r"\d+", text)
    rank = int(numbers[0]) if numbers else None
    return rank, int(numbers[1]) if len(numbers) > 1 else None


def _signed(text: str | None) -> int | None:
    if text is None:
        return None
    text = text.strip()
    return int(text) if re.fullmatch(r"-?\d{1,10}", text) else None


def _signal_number(name: str) -> int | None:
    name = name.strip().upper().removeprefix("SIGNALS.")
    if name.isdigit():
        return int(name) if _is_signal(int(name)) else None
    words = {
        "KILLED": 9, "TERMINATED": 15, "ABORTED": 6, "SEGMENTATION FAULT": 11, "BUS ERROR": 7,
        "FLOATING POINT EXCEPTION": 8, "ILLEGAL INSTRUCTION": 4, "HANGUP": 1, "INTERRUPT": 2,
        "TRACE/BREAKPOINT TRAP": 5, "BAD SYSTEM CALL": 31, "QUIT": 3, "ALARM CLOCK": 14,
        "USER DEFINED SIGNAL 1": 10, "USER DEFINED SIGNAL 2": 12,
    }  # fmt: skip
    if name in words:
        return words[name]
    full = name if name.startswith("SIG") else f"SIG{name}"
    return signal.Signals[full].value if full in signal.Signals.__members__ else None
