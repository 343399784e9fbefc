"""Standard output and standard error as the commands use them.

Standard output carries the answer alone; a reader that goes away early (`| head`) is no fault. Progress
and warnings go to standard error, progress only where that is a terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logtriage.report.visible import prose, visible

if TYPE_CHECKING:
    from rich.console import Console

STOPPING = "stopping: the verdict will stand on what was read so far (Ctrl-C again: no verdict)"

Progress = Callable[[str, int, int], None]


def answer(text: str) -> None:
    """Write to standard output; silence from then on when nobody reads it any more."""
    if sys.stdout is None:  # closed by the caller
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would fail again, loudly, when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def answer_with(draw: Callable[[Console], None]) -> None:
    """Let `draw` print on a console that stands for standard output.

    A console that wrote by itself would end the program on a broken pipe.
    """
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    with console.capture() as drawn:
        draw(console)
    answer(drawn.get())


def complain(message: str, more: str = "") -> None:
    """One line on standard error, whatever the message holds; below it `more`, which is our own, as it is."""
    if sys.stderr is not None:  # `print` would take standard output instead
        print(f"logtriage: {prose(message)}\n{more}", end="", file=sys.stderr)


@contextmanager
def progress_shown(quiet: bool) -> Iterator[Progress | None]:
    """A callback (file, bytes done, bytes in all) that draws a bar; None where nobody would see it."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    # It draws when it is told, without a thread of its own: beside threads no copies of the process are made.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bars:
        task = bars.add_task("", total=None)

        def advance(file: str, done: int, total: int) -> None:
            bars.update(task, description=visible(file, 60), completed=done, total=total or None)
            bars.refresh()

        yield advance


@contextmanager
def stopped_early() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one ends the command as ever."""
    enough = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield enough
        return

    def stop(number: int, frame: object) -> None:
        if enough.is_set():
            raise KeyboardInterrupt
        enough.set()
        complain(STOPPING)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield enough
    finally:
        signal.signal(signal.SIGINT, before)
