"""Where an actor of Ray died: its error tells the address in rows of their own, beside the words."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import Line
from logtriage.regex import regex

_ROW = regex(r"(?:^|[\s)])\s*(?:class_name|actor_id|pid|name|namespace|ip): \S")
_ADDRESS = regex(r"(?:^|[\s)])\s*ip: (?P<address>(?:\d{1,3}\.){3}\d{1,3})\s*$")
# verl names its workers by their group of bundles, one a node, and by their place in it: in the first one the
# place is the rank.
_NAME = regex(r"(?:^|[\s)])\s*name: \w{0,60}Worker\w{0,40}_0:(?P<rank>\d{1,3})\s*$")
_OF_ACTORS = regex(r"(?i)\bactor\b|ActorDied|ActorUnavailable")
ROWS = 8  # of such an error at most
_TYPES = ("process.", "host.node_lost", "host.out_of_memory", "scheduler.preempted")


def with_actors(candidates: Sequence[Candidate], scene: Scene, topology: Topology) -> list[Candidate]:
    """The candidates; what tells of an actor's death without a place has that of the actor."""
    return [_placed(each, scene, topology) for each in candidates]


def _placed(candidate: Candidate, scene: Scene, topology: Topology) -> Candidate:
    of_actor = candidate.failure_type.startswith(_TYPES) and _OF_ACTORS.search(candidate.line.text[:2000])
    if candidate.host is not None or candidate.rank is not None or not of_actor:
        return candidate
    address, rank = _rows_beside(candidate.line, scene.lines(candidate.line.file))
    if address is None:
        return candidate
    host = topology.host_of_address.get(address, topology.host_named.get(address, address))
    return replace(candidate, host=host, rank=topology.rank_alone.get(host, rank))


def _rows_beside(line: Line, lines: Sequence[Line]) -> tuple[str | None, int | None]:
    """The address, and the rank, in the rows right below a line, or in those right above it and its like."""
    at = bisect.bisect_left(lines, line.number, key=lambda each: each.number)
    for near in (lines[at + 1 : at + 1 + ROWS], lines[max(0, at - ROWS) : at][::-1]):
        address: str | None = None
        rank: int | None = None
        for text in (each.text for each in near):
            is_row = _ROW.search(text[:300]) is not None
            if not (is_row or (address is None and _OF_ACTORS.search(text[:2000]))):
                break
            if address is None and (found := _ADDRESS.search(text[:300])) is not None:
                address = found["address"]
            elif rank is None and (named := _NAME.search(text[:300])) is not None:
                rank = int(named["rank"])
        if address is not None:
            return address, rank
    return None, None
