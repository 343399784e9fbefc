"""Whose exception a parent repeats: what `spawn`, Ray and XLA say above the traceback of a child."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from logtriage.intake.reading import Reading
from logtriage.localize.exits import Exit
from logtriage.localize.scene import Sign
from logtriage.localize.topology import Topology
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

# Lines by which a parent introduces the traceback of a child.
_INTRODUCED = regex(
    r"-- Process (?P<rank>\d+) terminated with|\bworld_rank=(?P<world>\d+)\b.*(?:failed|error)"
    r"|Exception in device=\w+:(?P<device>\d{1,5}): |\[Rank (?P<snippet>\d{1,7}) Error Snippet\]:"
    # Of CANN, which tells the reason below, by its code: `[ERROR] … (PID:7, Device:1, RankID:9) ERR02200 …`
    r"|\(PID:\d{1,10}, Device:\d{1,5}, RankID:(?P<coded>\d{1,7})\) ERR\d"
)
# One stands in each.
_INTRODUCING = ("terminated with", "world_rank=", "in device=", "Error Snippet]", "RankID:")
_RAY_TASK = regex(r"RayTaskError\(.*\(pid=(\d{1,9}), ip=([\w.:]{1,60})")
# Below Ray's own exception stands which node ran short; seldom it is that of the driver that repeats it.
_NODE_THAT_RAN_LOW = regex(r"\bon the node \(IP: (?P<host>[\w.:-]{1,60}), ID: ")
_RAN_LOW = "due to the node running low"
INTRODUCED_LINES = 4  # so near, lines that are no traceback belong to it as well


class Introduction(NamedTuple):
    """Whose exception follows, and the number of the line that says so."""

    rank: int | None
    number: int
    host: str | None = None


def introduced_ranks(reading: Reading, topology: Topology, exits: Sequence[Exit]) -> dict[int, Introduction]:
    """Who is introduced, by number of the lines that follow `-- Process 0 terminated with …:`."""
    ranks: dict[int, Introduction] = {}
    current: Introduction | None = None
    spoken_by: int | None = None  # whose own words stand among those of whom he introduces: no other rank's
    above: Line | None = None
    is_coded = False  # nothing but a code's own lines follows
    for line in reading.lines:
        text = line.text[:400]
        if is_coded and current is not None and line.number - current.number > INTRODUCED_LINES:
            current = None
        may = any(words in text for words in _INTRODUCING)
        found = _INTRODUCED.search(text) if may else None
        task = _RAY_TASK.search(text) if "RayTaskError(" in text else None
        if task:
            pids, pid = topology.rank_of_pid, int(task[1])
            of = pids.get((task[2], pid), pids.get((None, pid)))
            current, spoken_by = Introduction(of, line.number, task[2]), line.rank
            is_coded = False
        elif found:
            number = int(next(group for group in found.groups() if group))
            rank = _spawned(number, line, topology, exits) if found["rank"] else number
            current, spoken_by = Introduction(rank, line.number), line.rank
            is_coded = found["coded"] is not None
        elif " node (IP: " in text and (node := _NODE_THAT_RAN_LOW.search(text)) is not None:
            told = Introduction(None, line.number, node["host"])
            ranks[line.number] = told
            if above is not None and _RAN_LOW in above.text[:400]:
                ranks[above.number] = told
        elif current is not None and line.number - current.number < 200 and line.rank in (None, spoken_by):
            ranks[line.number] = current
            if text.startswith("  ") and line.number == current.number + 1:  # frames: the end is near
                current = current._replace(number=line.number)
        above = line
    return ranks


def headings_of_codes(signs: Sequence[Sign]) -> set[tuple[str, int]]:
    """The places of lines that only say that a call failed, where the code of a reason stands right below."""
    reasons: dict[str, list[int]] = defaultdict(list)
    headings = []
    for sign in signs:
        found = _INTRODUCED.search(sign.text[:400]) if "RankID:" in sign.text[:400] else None
        if found is not None and found["coded"] is not None:
            if sign.rule.strength is Strength.HINT:
                headings.append((sign.line.file, sign.line.number))
        elif sign.rule.role is Role.CAUSE and sign.rule.strength is not Strength.HINT:
            reasons[sign.line.file].append(sign.line.number)
    for numbers in reasons.values():
        numbers.sort()

    def has_reason(file: str, number: int) -> bool:
        below = bisect.bisect_right(reasons[file], number)
        return below < len(reasons[file]) and reasons[file][below] <= number + INTRODUCED_LINES

    return {place for place in headings if has_reason(*place)}


LEAST_APART = 2  # ranks of a node: with one a node, spawn's numbers are all 0


def _spawned(number: int, line: Line, topology: Topology, exits: Sequence[Exit]) -> int | None:
    """The global rank of the process that `spawn` counts as `number` on its own node.

    Of a job on several machines by the first rank of that node, or by the one task that was seen to fail.
    None where neither is told: only on the first machine the numbers are the same.
    """
    host = topology.host(line)
    if (first := topology.offsets.first(line, host)) is not None:
        return first + number
    told = topology.global_rank(host, number) if host is not None and len(topology.hosts) > 1 else None
    if told is not None:
        return told
    failed = {each.rank for each in exits if each.rank is not None and each.code > 0}
    if len(failed) == 1 and (rank := failed.pop()) - number >= LEAST_APART:
        return rank
    return number if len(topology.hosts) < 2 else None
