"""One of the numbered members of a job that never said what all others said at its start.

`client (0) connected` … `client (15) connected`, each once, and none of 11: where a look hours later shows
that nothing more came, that is the one for whom all wait. No step was made that would tell more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logtriage.localize.at_work import is_look
from logtriage.localize.frozen import naive, told_now
from logtriage.localize.grown import PROMPT
from logtriage.localize.onlookers import LATER_SECONDS, running
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_MEMBER = regex(
    r"(?i)\b(?:rank|client|worker|trainer|process|proc|member|peer|learner|actor|replica|participant|task)s?"
    r"[ _#=:-]{0,2}[(\[<{]?(?P<number>\d{1,5})\b"
)
LEAST_MEMBERS = 6
MOST_MISSING = 2  # and at most a sixth of all
FEW_BEHIND = 4  # lines that may stand behind the last of what was said, before somebody looks


@dataclass(frozen=True, slots=True)
class OneMissing:
    """Who never said it, the last line of those who did, and what shows how late it was."""

    ranks: tuple[int, ...]
    last: Line
    seen: Line
    why: str
    hosts: tuple[str, ...] = ()


def one_missing(scene: Scene) -> OneMissing | None:
    """The few members that never said what all others said last, where somebody looked hours later."""
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES or is_look(reading.lines):
            continue
        own = [line for line in reading.lines if line.text.strip()]
        asked = next(
            (at for at, line in enumerate(own) if at > 0 and PROMPT.match(line.text[:300])), len(own)
        )
        found = _gap(own[:asked])
        if found is None:
            continue
        missing, last, members = found
        seen = _looked_later(scene, own[:asked], own[asked:])
        if seen is not None:
            named = ", ".join(map(str, missing))
            why = f"all others said what number {named} never did"
            return OneMissing(missing, last, seen, why, _machines(missing, members, own[:asked]))
    return None


def _gap(lines: Sequence[Line]) -> tuple[tuple[int, ...], Line, Mapping[int, Line]] | None:
    """The numbers missing from one form of lines, with which a log ends, its last, and those who said it."""
    said: dict[str, dict[int, Line]] = defaultdict(dict)
    again: set[str] = set()
    for line in lines:
        if (member := _MEMBER.search(line.message[:300])) is not None:
            form = without_digits(line.message[:300])
            number = int(member["number"])
            again |= {form} if number in said[form] else set()
            said[form][number] = line
    for form, members in said.items():
        last = max(members.values(), key=lambda line: line.number)
        size = max(members) + 1
        missing = tuple(number for number in range(size) if number not in members)
        if form in again or len(members) < LEAST_MEMBERS or not 0 < len(missing) <= MOST_MISSING:
            continue
        behind = sum(line.number > last.number for line in lines)
        if len(missing) * LEAST_MEMBERS <= size and behind <= FEW_BEHIND:
            return missing, last, members
    return None


_NUMBER = regex(r"(?<![\w.])\d{1,5}(?![\w.])")
_ADDRESS = regex(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")


def _machines(missing: Sequence[int], members: Mapping[int, Line], log: Sequence[Line]) -> tuple[str, ...]:
    """The machines of those members: the others' lines number these in blocks, and the log lists as many."""
    numbers = {member: _NUMBER.findall(line.message[:300]) for member, line in members.items()}
    hosts = list(dict.fromkeys(host for line in log for host in _ADDRESS.findall(line.text[:400])))
    size = max(members) + 1
    each = size // len(hosts) if len(hosts) > 1 and size % len(hosts) == 0 else 0
    places = range(min(map(len, numbers.values()))) if each > 1 else ()
    if not any(all(int(told[at]) == member // each for member, told in numbers.items()) for at in places):
        return ()
    return tuple(dict.fromkeys(hosts[number // each] for number in missing))


def _looked_later(scene: Scene, log: Sequence[Line], behind: Sequence[Line]) -> Line | None:
    """A clock far behind the last that the log shows, or a process that runs for so long."""
    times = [line.time for line in log if line.time is not None]
    shown = [now for line in log for now in told_now(line)] or ([naive(max(times))] if times else [])
    looks = [line for each in scene.readings if is_look(each.lines) for line in each.lines]
    for line in (*behind, *looks):
        for now in told_now(line):
            if shown and (now - max(shown)).total_seconds() > LATER_SECONDS:
                return line
    if shown:
        return None
    return next((line for line, elapsed in running(scene) if elapsed > LATER_SECONDS), None)
