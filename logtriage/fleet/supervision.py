"""One worker process and whoever watches it: time limit, memory bound, a second try after its death."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOK_SECONDS = 0.2  # between two looks at the worker's memory and the clock
HUGE_BYTES = 512 << 20  # from here on the logs of one job are read by several processes
# A poisoned job took its worker with it, or too long; a faulty one met a fault of the program or of its
# source, which may be mended by the next night.
TRIAGED, UNREADABLE, POISONED, FAULTY = "triaged", "unreadable", "poisoned", "faulty"


@dataclass(frozen=True, slots=True)
class Task:
    """The logs of one job; `size` in bytes is a hint, `processes` how many may read a huge one.

    With a `scheduler` (the address of a Dask cluster) its workers read the parts of a large one.
    """

    key: str
    paths: tuple[str, ...]
    size: int = 0
    processes: int = 1
    scheduler: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use: seconds, and bytes of memory of the process that triages it."""

    seconds: float = 1_800.0
    memory: int = 4 << 30
    offline: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task: `verdict` is the document where it was triaged, else `reason` says why not."""

    status: str  # triaged | unreadable | poisoned | faulty
    verdict: dict[str, Any] | None = None
    reason: str = ""


class _Died(Exception):
    """The worker ended by itself; the message says how."""


class _Exceeded(Exception):
    """The worker was ended because a limit was passed; the message says which."""


class Worker:
    """A worker process, started when it is first needed and again whenever it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # so that none is started once this worker is over
        self._is_over = False

    def triage(self, task: Task, limits: Limits) -> Outcome:
        """The outcome of a task; a job that kills its worker twice, or passes a limit, is poisoned."""
        for _ in range(2):
            try:
                return _outcome(self._answer(task, limits))
            except _Exceeded as told:
                self._stop()
                return Outcome(POISONED, reason=str(told))
            except _Died as told:
                self._stop()
                reason = str(told)
        return Outcome(POISONED, reason=f"its process died twice, {reason}")

    def close(self) -> None:
        """End it for good, from any thread; whoever waits for an answer is told that the process died."""
        with self._lock:
            self._is_over = True
            if self._process is not None:
                _kill(self._process)
                self._process.wait()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_over:
                raise _Died("since the night was ended")
            if self._process is None:
                # A session of its own: Ctrl-C is answered by whoever started the night. -P: no module comes
                # from the working directory, which may hold what others wrote.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "logtriage.fleet.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            return self._process

    def _answer(self, task: Task, limits: Limits) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        asked = {
            "paths": task.paths,
            "offline": limits.offline,
            "processes": task.processes,
            "scheduler": task.scheduler,
        }
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise _Died(_ending(process.wait())) from None
        answer: dict[str, Any] = json.loads(self._line(process, limits))
        return answer

    def _line(self, process: subprocess.Popen[bytes], limits: Limits) -> bytes:
        """The next line that the worker writes. Raises _Died and _Exceeded."""
        assert process.stdout is not None
        deadline = time.monotonic() + limits.seconds
        told = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while not told.endswith(b"\n"):
                if ready.select(LOOK_SECONDS):
                    piece = os.read(process.stdout.fileno(), 1 << 20)
                    if not piece:
                        raise _Died(_ending(process.wait()))
                    told += piece
                    continue
                if time.monotonic() > deadline:
                    raise _Exceeded(f"it took longer than {limits.seconds:g} s")
                if _memory(process.pid) > limits.memory:
                    raise _Exceeded(f"it needed more than {limits.memory / (1 << 20):,.0f} MiB of memory")
        return bytes(told)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it together with the processes that read for it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _outcome(answer: dict[str, Any]) -> Outcome:
    if "verdict" in answer:
        return Outcome(TRIAGED, answer["verdict"])
    if "unreadable" in answer:
        return Outcome(UNREADABLE, reason=answer["unreadable"])
    return Outcome(FAULTY, reason=answer["fault"])


def _ending(status: int) -> str:
    if status >= 0:
        return f"the last time with exit status {status}"
    try:
        return f"the last time by {signal.Signals(-status).name}"
    except ValueError:
        return f"the last time by signal {-status}"


def _memory(pid: int) -> int:
    """Resident bytes of a process; 0 where the system does not tell."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


_here = threading.local()


def triage_here(task: Task, limits: Limits) -> Outcome:
    """The outcome of a task from a worker that belongs to the calling thread and is kept for the next."""
    if not hasattr(_here, "worker"):
        _here.worker = Worker()
    worker: Worker = _here.worker
    return worker.triage(task, limits)
