"""Work that is shared out to copies of this process, which know all that it knows at that moment."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

Done = TypeVar("Done")

PATIENCE_SECONDS = 60.0  # for a copy to end what it has in hand, once nothing is left to take


def shared_out(work: Callable[[int], Done], number: int, processes: int) -> list[Done]:
    """`work(0)` to `work(number - 1)`, in order, done by so many processes: this one and forked copies.

    What `work` gives is sent back pickled; it may change nothing else. All is done here where a fork is not
    to be had (outside Linux, in a daemon of `multiprocessing`) or not safe (beside other threads, whose locks
    a copy would hold for ever). So is what copies left undone, whatever ended them.
    """
    copies = min(processes, number) - 1
    is_daemon = multiprocessing.current_process().daemon
    if copies < 1 or sys.platform != "linux" or is_daemon or threading.active_count() > 1:
        return [work(at) for at in range(number)]
    forks = multiprocessing.get_context("fork")
    taken: Synchronized[int] = forks.Value("q", 0)
    found: dict[int, Done] = {}
    begun: list[tuple[ForkProcess, Connection]] = []
    try:
        for _ in range(copies):
            receiver, sender = forks.Pipe(duplex=False)
            copy = forks.Process(
                target=_in_copy, args=(work, number, taken, sender, os.getpid()), daemon=True
            )
            with contextlib.suppress(OSError):  # no more processes, or no memory for them
                copy.start()
                begun.append((copy, receiver))
            sender.close()
        for at in _claimed(taken, number):
            found[at] = work(at)
        for _, receiver in begun:
            with contextlib.suppress(EOFError, OSError):
                if receiver.poll(PATIENCE_SECONDS):
                    found.update(receiver.recv())
    finally:
        for copy, receiver in begun:
            receiver.close()
            copy.terminate()
            copy.join()
    return [found[at] if at in found else work(at) for at in range(number)]


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
    bound_to(parent)
    found = {}
    with contextlib.suppress(Exception):  # done again by the parent, which then sees the error
        for at in _claimed(taken, number):
            found[at] = work(at)
    with contextlib.suppress(OSError):
        sender.send(found)


def bound_to(parent: int) -> None:
    """Let this process end with its parent, and leave Ctrl-C to that.

    Ctrl-C reaches every process of a terminal: the first one alone answers it, and ends the others.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A process whose parent was killed would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
