"""Who left the common path, where two equal sides of a job wait in different collectives.

Those who went on as ever wrote what all write. Those who left say so: the data is at its end, an evaluation
or a save begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from logtriage.localize.behind import Waiting
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

LAST_LINES = 30  # of a rank, before it complains
_WORDLESS = regex(r"^[\W\d_]*$")


def departed(
    scene: Scene, topology: Topology, waiting: Sequence[Waiting]
) -> tuple[tuple[int, ...], list[Line]]:
    """The ranks of the one side all of which wrote, before they waited, what nobody of the other wrote; and
    the last of these lines.
    """
    sides: dict[tuple[str, str], set[int]] = defaultdict(set)
    for each in waiting:
        sides[each.operation, each.shape].add(each.rank)
    if len(sides) != 2 or min(map(len, sides.values())) < 2:
        return (), []
    said = _said_before(scene, topology, {each.rank: each.line for each in waiting})
    found = []
    for side in sides.values():
        usual = {kind for rank, lines in said.items() if rank not in side for kind in lines}
        own = [said.get(rank, {}) for rank in sorted(side)]
        common = [kind for kind in own[0] if kind not in usual and all(kind in lines for lines in own)]
        if common:
            found.append((tuple(sorted(side)), [own[0][kind] for kind in common]))
    ranks, lines = found[0] if len(found) == 1 else ((), [])
    return ranks, sorted(lines, key=lambda line: line.number)[-1:]


def _said_before(scene: Scene, topology: Topology, complaints: dict[int, Line]) -> dict[int, dict[str, Line]]:
    """By rank, the kinds of its last lines in the file of its complaint and above it."""
    lines: dict[int, list[Line]] = defaultdict(list)
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            rank = topology.rank(line)
            if rank is None or (limit := complaints.get(rank)) is None or limit.file != line.file:
                continue
            if line.number < limit.number and not _WORDLESS.match(line.message):
                lines[rank].append(line)
    return {
        rank: {without_digits(line.message): line for line in own[-LAST_LINES:]}
        for rank, own in lines.items()
    }
