"""The power of GPUs as a loop writes it beside a job: the time, whose GPU it is, how busy and at what power.

Such rows have no heading and many forms (`10:02:31 cn-3, 0, 97 %, 611.2 W`, `gpu3 util 100% pwr 104W`). What
they have in common is one share in per cent, one power in watts, and that all else is the same for a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.model import Line
from logtriage.regex import regex


@dataclass(frozen=True, slots=True)
class GpuPower:
    """How busy a GPU was when it was seen last, and at what power."""

    line: Line
    busy: int
    share: float  # of the power that it may draw, or drew at most


_BUSY = regex(r"(?<![\d.])(?P<busy>\d{1,3})(?:\.\d{1,2})? ?%")
_WATTS = regex(r"(?<![\d.])(?P<watts>\d{1,4}(?:\.\d{1,3})?) ?W\b")
_TIME = regex(r"\d{4}[-/]\d\d[-/]\d\d[T _]?|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?Z?")
ROW_WIDTH = 300
LEAST_SAMPLES = 4  # of a GPU: the work that it did, and …
LAST = 3  # … so many looks behind it that find it idle …
LEAST_SECONDS = 900.0  # … for so long: all wait for one rank that saves as well


def sampled_power(lines: Sequence[Line]) -> list[GpuPower]:
    """The last sample of each GPU, as busy as it was least and with the most power of its last ones."""
    samples: dict[str, list[tuple[Line, int, float]]] = {}
    for line in lines:
        if "%" not in line.text or "W" not in line.text or len(line.text) > ROW_WIDTH:
            continue
        busy, watts = _BUSY.findall(line.text), _WATTS.findall(line.text)
        if len(busy) == len(watts) == 1:
            whose = _WATTS.sub("", _BUSY.sub("", _TIME.sub("", line.text)))
            samples.setdefault(whose, []).append((line, int(busy[0]), float(watts[0])))
    return [
        GpuPower(
            own[-1][0],
            min(busy for _, busy, _ in own[-LAST:]),
            max(watts for _, _, watts in own[-LAST:]) / max(1.0, *(watts for _, _, watts in own)),
        )
        for own in samples.values()
        if len(own) >= LEAST_SAMPLES and _span(own[-LAST][0], own[-1][0]) >= LEAST_SECONDS
    ]


def _span(first: Line, last: Line) -> float:
    return last.time - first.time if first.time is not None and last.time is not None else 0.0
