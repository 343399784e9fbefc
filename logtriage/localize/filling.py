"""Input that is read anew before each stretch of steps, for longer than the steps take.

A buffer that is filled, a shard that is fetched, a cache that is made: each epoch it counts up to its total
again (`4653 of 12360`), and the devices wait. Once, at the start, that is usual; what comes back between the
steps, again and again, bounds the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from logtriage.localize.progress import Trace
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_FILLS = regex(
    r"(?i)\b(?:fill|load|read|fetch|prefetch|shuffl|decod|cach|buffer|stag|unpack|extract|download)\w{0,6}\b"
    r"[^\n]{0,80}?(?<![\w.])(?P<done>\d{1,12}) ?(?:of|/) ?(?P<total>\d{1,12})\b"
)
# What is read for other reasons than the next steps, or by whom who tells no more than that.
_ELSE = regex(r"(?i)\b(?:eval|val(?:id)?|test|checkpoint|ckpt|weight|model|param|optimizer|state)")
LEAST_STRETCHES = 3  # that steps follow
LEAST_SHARE = 0.3  # of the time since the first of them


@dataclass(slots=True)
class _Stretch:
    lines: list[Line] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return (self.lines[-1].time or 0.0) - (self.lines[0].time or 0.0)


@dataclass(frozen=True, slots=True)
class Filling:
    """The share of the time that the input was read while no step was made, and lines that show it."""

    share: float
    lines: tuple[Line, ...]


def refilled(traces: Sequence[Trace], scene: Scene) -> Filling | None:
    """The input that is read anew again and again, if that takes much of the time."""
    stepped: dict[str, list[int]] = {}
    for trace in traces:
        stepped.setdefault(trace.file, []).extend(point.line.number for point in trace.points)
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES or reading.source.file not in stepped:
            continue
        dated = [line.time for line in reading.lines if line.time is not None]
        for stretches in _stretches(reading.lines).values():
            numbers = stepped[reading.source.file]
            followed = [
                each
                for each, after in zip(stretches, (*stretches[1:], None), strict=True)
                if any(
                    each.lines[-1].number < number and (after is None or number < after.lines[0].number)
                    for number in numbers
                )
            ]
            if len(followed) < LEAST_STRETCHES:
                continue
            whole = max(dated) - (stretches[0].lines[0].time or 0.0)
            spent = sum(each.seconds for each in followed)
            if whole > 0 and LEAST_SHARE <= spent / whole <= 1.0:
                longest = max(followed, key=lambda each: each.seconds)
                lines = (longest.lines[-1], longest.lines[0], followed[0].lines[0])
                return Filling(spent / whole, tuple(dict.fromkeys(lines)))
    return None


def _stretches(lines: Sequence[Line]) -> dict[str, list[_Stretch]]:
    """By kind of lines, those in which one count goes up, each until it begins anew."""
    found: dict[str, list[_Stretch]] = {}
    last: dict[str, int] = {}
    for line in lines:
        text = line.message[:300]
        if line.time is None or (" of " not in text and "/" not in text):
            continue
        told = _FILLS.search(text)
        if told is None or _ELSE.search(text) is not None:
            continue
        kind, done = without_digits(text), int(told["done"])
        of_kind = found.setdefault(kind, [])
        if not of_kind or done <= last[kind]:
            of_kind.append(_Stretch())
        of_kind[-1].lines.append(line)
        last[kind] = done
    return found
