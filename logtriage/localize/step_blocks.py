"""Metrics that stand one a line below the heading of their step: together they are one line of others.

`[batch=10/900]:`, and below it `Train loss/total: 2.1`, `Train time/compute_per_batch: 4.1`, …
"""

from __future__ import annotations

from collections.abc import Iterator

from logtriage.localize.durations import timings
from logtriage.localize.progress import Trace
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_METRIC = regex(
    r"^[^\w\n]{0,12}[A-Za-z][\w /().%-]{1,60}? ?[:=] {0,4}[-+]?\d[\d.,]{0,20}(?:e[-+]?\d{1,3})?"
    r" ?[\w/%]{0,12}"
    r"(?: {1,4}\([-+]?\d[\d.,]{0,20}(?:e[-+]?\d{1,3})?\))?$"  # and its average so far
)
MOST_LINES = 60  # of a block
MOST_BLOCKS = 400


def step_blocks(trace: Trace, scene: Scene) -> Iterator[dict[str, tuple[float, Line]]]:
    """The named durations below each step of a trace, in seconds, with their lines."""
    headings = {point.line.number for point in trace.points[:MOST_BLOCKS]}
    block: dict[str, tuple[float, Line]] = {}
    began: int | None = None
    for line in scene.lines(trace.file):
        if line.number in headings:
            if block:
                yield block
            block, began = {}, line.number
        elif began is not None and line.number - began <= MOST_LINES and _METRIC.match(line.message[:160]):
            for name, seconds in timings(line.message[:160]).items():
                block.setdefault(name, (seconds, line))
    if block:
        yield block
