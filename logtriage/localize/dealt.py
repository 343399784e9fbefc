"""Pieces of work that one process deals out to machines, and of which it tells when each begins and ends.

That the last one was begun is no sign of progress: each that ends is. And a piece that never ends, behind all
others, is what the job waits for, on the machine that has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from logtriage.localize.progress import median
from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_THING = r" (?P<thing>[a-z]{2,20} #?\d[\d._-]{0,16}(?: (?:in|of) [a-z]{2,12} #?\d[\d.]{0,10})?)"
_BEGINS = regex(
    r"(?i)\b(?:start(?:ing|ed)?|launch(?:ing|ed)|began|submitt(?:ing|ed)|assign(?:ing|ed))" + _THING
)
_ENDS = regex(
    r"(?i)\b(?:finished|completed|done(?: with)?|ended|processed|lost|failed|cancel\w{1,6}|abort\w{1,3})"
    + _THING
)
_ON = regex(
    rf"(?:\(|[ ,(](?:on|to|host|node|worker)[ =:]{{1,2}}(?:host |node |worker )?)({HOST_WORD})(?![\w.-])"
)
LEAST_ENDED = 10
FEW = 20  # of so many that ended one may be open
LEAST_HOSTS = 2


@dataclass(frozen=True, slots=True)
class Dealt:
    """The line by which the last piece ended, those that never ended by machine, and how long one takes."""

    ended: Line
    open: Mapping[str, Line]
    usual: float


def dealt(scene: Scene, newest: Line) -> Dealt | None:
    """What was dealt out to several machines, where the last step that is told is of such a piece."""
    if _begun(newest) is None and _ENDS.search(newest.message[:300]) is None:
        return None
    begun: dict[str, tuple[Line, str]] = {}
    ended: dict[str, Line] = {}
    for line in scene.lines(newest.file):
        if (end := _ENDS.search(line.message[:300])) is not None:
            ended[_name(end)] = line
        elif (told := _begun(line)) is not None:
            begun[told[0]] = line, told[1]
    both = begun.keys() & ended.keys()
    if len(both) < LEAST_ENDED or len({host for _, host in begun.values()}) < LEAST_HOSTS:
        return None
    left = {thing: each for thing, each in begun.items() if thing not in ended}
    few = left if len(left) * FEW <= len(both) else {}
    last = max((ended[thing] for thing in both), key=lambda line: line.number)
    took = [(ended[each].time or 0.0) - (begun[each][0].time or 0.0) for each in both]
    if last.number < newest.number:
        return None
    return Dealt(last, {host: line for line, host in few.values()}, median(took))


def _begun(line: Line) -> tuple[str, str] | None:
    """Which piece a line says was begun, and on which machine."""
    text = line.message[:300]
    if (begin := _BEGINS.search(text)) is None:
        return None
    host = next((each[1] for each in _ON.finditer(text, begin.end()) if is_host(each[1])), None)
    return (_name(begin), host) if host is not None else None


def _name(told: re.Match[str]) -> str:
    return told["thing"].lower()
