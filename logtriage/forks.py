"""Work that is shared out to copies of this process, which know all that it knows at that moment."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from typing import Any, TypeVar

Done = TypeVar("Done")

START = "fork" if sys.platform == "linux" else "spawn"  # elsewhere libraries of the system do not bear forks
PATIENCE_SECONDS = 60.0  # for a copy to end what it has in hand, once nothing is left to take
ASKED_SECONDS = 0.2  # how often, meanwhile, it is asked whether to wait on
# How often a process that works itself takes what came: looking costs as much as a small task.
LOOKING_SECONDS = 0.004
# All that the program answers; Windows knows no SIGHUP.
_ENDING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
_UNSENT = 4  # results that a copy has ready before it waits for the one that takes them: they may be large


def shared_out(
    work: Callable[[int], Done],
    number: int,
    processes: int,
    meanwhile: Callable[[], None] | None = None,
) -> list[Done]:
    """`work(0)` to `work(number - 1)`, in order, done by so many processes: this one and forked copies.

    What `work` gives is sent back pickled; it may change nothing else. What this process is to do `meanwhile`
    it does before it takes a share. All is done here where a fork is not
    to be had (outside Linux, in a daemon of `multiprocessing`) or not safe (beside other threads, whose locks
    a copy would hold for ever). So is what copies left undone, whatever ended them.
    """
    if START != "fork" or threading.active_count() > 1:
        processes = 1
    found: dict[int, Done] = {}
    deadline: float | None = None  # from when on nothing came

    def is_patient() -> bool:
        nonlocal deadline
        deadline = deadline or time.monotonic() + PATIENCE_SECONDS
        return time.monotonic() < deadline

    for at, done in as_done(work, number, min(processes, number) - 1, is_patient, meanwhile=meanwhile):
        found[at] = done
        deadline = None
    return [found[at] if at in found else work(at) for at in range(number)]


def as_done(
    work: Callable[[int], Done],
    number: int,
    copies: int,
    waits_on: Callable[[], bool],
    *,
    is_idle: bool = False,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Done]]:
    """Each of `work(0)` to `work(number - 1)` with its number, in the order in which they are done.

    Done by this process, unless it `is_idle`, and so many copies of it, which are forked on Linux; elsewhere
    `work` must be picklable to have any. What copies that ended early left undone is done here. What this
    process is to do `meanwhile` it does as soon as they are at work. While it has nothing else to do,
    `waits_on` is asked five times a second whether copies are waited for; what they have in hand is left out
    as soon as it says no. No copy outlives this.
    """
    copies = 0 if multiprocessing.current_process().daemon else min(copies, number)
    meanwhile = meanwhile or _nothing
    if copies < 1:
        meanwhile()
        for at in range(number):
            yield at, work(at)
        return
    context: Any = multiprocessing.get_context(START)
    taken: Synchronized[int] = context.Value("q", 0)
    begun: list[tuple[BaseProcess, Connection]] = []
    open_: list[Connection] = []
    missing = set(range(number))
    try:
        for _ in range(copies):
            receiver, sender = context.Pipe(duplex=False)
            copy = context.Process(
                target=_in_copy, args=(work, number, taken, sender, os.getpid()), daemon=True
            )
            with contextlib.suppress(OSError), _undisturbed():  # no more processes, or no memory for them
                copy.start()
                begun.append((copy, receiver))
                open_.append(receiver)
            sender.close()
        meanwhile()
        looked = time.monotonic()
        for at in () if is_idle else _claimed(taken, number):
            yield at, work(at)
            missing.discard(at)
            if time.monotonic() < looked + LOOKING_SECONDS:
                continue
            for each in _received(open_, 0):
                yield each
                missing.discard(each[0])
            looked = time.monotonic()
        while open_ and missing and waits_on():
            for each in _received(open_, ASKED_SECONDS):
                yield each
                missing.discard(each[0])
        if not open_:
            for at in sorted(missing):
                yield at, work(at)
    finally:
        for copy, receiver in begun:
            receiver.close()
            copy.terminate()
            copy.join()


def _nothing() -> None:
    pass


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that end the program wait: what their handlers raise while a process forks would be lost."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _received(open_: list[Connection], seconds: float) -> Iterator[tuple[int, Any]]:
    """What copies have sent, waited for so long; those that are at their end are `open_` no more."""
    while ready := wait(open_, seconds):
        for receiver in ready:
            assert isinstance(receiver, Connection)
            try:
                yield receiver.recv()
            except (EOFError, OSError):
                open_.remove(receiver)
        seconds = 0


def _claimed(taken: Synchronized[int], number: int) -> Iterator[int]:
    """The places that nobody has taken yet, one after the other."""
    while True:
        with taken.get_lock():
            at = taken.value
            taken.value = at + 1
        if at >= number:
            return
        yield at


def _in_copy(
    work: Callable[[int], Done], number: int, taken: Synchronized[int], sender: Connection, parent: int
) -> None:
    gc.freeze()  # looking for garbage would copy all pages of the parent
    with contextlib.suppress(RuntimeError):  # no more threads: the parent does what this one would
        _work_on(work, number, taken, sender, parent)


def _work_on(
    work: Callable[[int], Done], number: int, taken: Synchronized[int], sender: Connection, parent: int
) -> None:
    bound_to(parent)
    done: queue.Queue[tuple[int, Done] | None] = queue.Queue(_UNSENT)
    # Who takes the results has work of its own in hand, and this one need not wait for that.
    sending = threading.Thread(target=_send, args=(done, sender), daemon=True)
    sending.start()
    with contextlib.suppress(Exception):  # done again by the parent, which then sees the error
        for at in _claimed(taken, number):
            done.put((at, work(at)))
    done.put(None)
    sending.join()


def _send(done: queue.Queue[tuple[int, Done] | None], sender: Connection) -> None:
    is_open = True
    while (each := done.get()) is not None:
        try:
            if is_open:
                sender.send(each)
        except Exception:  # it cannot be pickled, or nobody is there any more
            is_open = False
    sender.close()


def leave_interrupts() -> None:
    """Leave Ctrl-C to the parent, and end without a word when told to.

    Ctrl-C reaches every process of a terminal: the first one alone answers it, and ends the others.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _ENDING - {signal.SIGINT}:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as below `nohup`
            signal.signal(number, signal.SIG_DFL)


def bound_to(parent: int) -> None:
    """Let this process end with its parent, and leave Ctrl-C to that."""
    leave_interrupts()
    if hasattr(signal, "pthread_sigmask"):  # they waited for this
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A process whose parent was killed would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
