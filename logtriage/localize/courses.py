"""Ranks that report no steps, each in a file of its own: whose course breaks off where its peers went on.

Ranks that do the same work write the same kinds of lines in the same order. Who wrote only the beginning of
what all of its peers wrote is the one that they wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from itertools import groupby

from logtriage.intake.reading import Reading
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.rulebank.matcher import without_digits

LEAST_LINES = 8  # that they have in common: fewer are alike by chance
MOST_LINES = 4_000
LEAST_RANKS = 4


def own_files(scene: Scene, topology: Topology) -> dict[int, Reading]:
    """By rank, of the files that it alone writes the longest: beside it may lie stacks, or its errors."""
    found: dict[int, Reading] = {}
    for reading in scene.readings:
        rank = topology.rank_of_file.get(reading.source.file, reading.source.rank)
        if rank is not None and reading.source.role in JOB_ROLES:
            known = found.get(rank)
            if known is None or len(reading.lines) > len(known.lines):
                found[rank] = reading
    return found


def _kind(line: Line) -> str:
    """A line without its numbers, and without what a bar draws of them."""
    return without_digits(line.message.partition("%|")[0])[:200]


def broke_off_alone(scene: Scene, topology: Topology, stepped: Set[int]) -> dict[int, Line]:
    """The last lines of the few ranks whose whole course is the beginning of that of all peers but one.

    One rank may write more than the others (metrics, checkpoints): it is no peer in this. Where others than
    that one report steps (`stepped`), those tell.
    """
    if len(stepped) > 1:
        return {}
    courses: dict[int, tuple[str, ...]] = {}
    last: dict[int, Line] = {}
    for rank, reading in own_files(scene, topology).items():
        written = [line for line in reading.lines if line.text.strip()]
        if not reading.whole or not LEAST_LINES <= len(written) <= MOST_LINES:
            return {}
        courses[rank] = tuple(kind for kind, _ in groupby(map(_kind, written)))  # however often each was said
        last[rank] = written[-1]
    if len(courses) < max(LEAST_RANKS, topology.size):
        return {}
    usual, count = Counter(courses.values()).most_common(1)[0]
    begun = sorted(
        rank for rank, course in courses.items() if course != usual and course == usual[: len(course)]
    )
    are_few = 0 < len(begun) * 3 <= len(courses)
    return {rank: last[rank] for rank in begun} if are_few and count + len(begun) + 1 >= len(courses) else {}
