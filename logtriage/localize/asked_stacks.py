"""Ends that a person asked for: a signal by which a process that stands still is made to show its stacks.

Python's faulthandler writes where all threads are when SIGABRT or another fatal signal comes. That it heads
them with a fatal error says nothing of the program: who sent the signal did so because it stood still.
"""

from __future__ import annotations

from collections.abc import Iterator

from logtriage.intake.transcripts import asks_for_stacks
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_SHOWN = regex(r"(?:Fatal Python error|Aborted|Segmentation fault|Quit)\b")
LINES_BELOW = 4  # of the command: the shell and the process may both write


def asked_stacks(scene: Scene) -> Iterator[Line]:
    """The lines by which a process shows that it was ended by such a command right above."""
    for reading in scene.readings:
        at: int | None = None
        for line in reading.lines:
            if asks_for_stacks(line.text):
                at = line.number
            elif at is not None and line.number - at <= LINES_BELOW and _SHOWN.search(line.text[:200]):
                yield line
