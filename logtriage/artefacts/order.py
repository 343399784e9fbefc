"""Whether ranks that share groups issued the same operations in the same order.

Ranks of one group run one program, so what two of them issued in two groups that both are in must come in
one order. Where it does not, each group waits for the other although all joined both.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from logtriage.artefacts.recording import Operation, Recording

# A group's kind and which of the rank's groups of that kind it is, and the number of the collective.
_Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Reordering:
    """`ranks` issued `second` before `first`; other ranks of their group issued them the other way round."""

    ranks: tuple[int, ...]
    first: str
    second: str
    is_minority: bool
    time: float | None


def reordered(recordings: Mapping[int, Recording]) -> Reordering | None:
    """A pair of operations that ranks of one group issued in different orders, if there is one."""
    orders = {rank: _order(recording) for rank, recording in recordings.items()}
    members: dict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for rank, recording in recordings.items():
        for group in recording.groups.values():
            if len(group.ranks) > 1:
                members[group.name, group.ranks].append(rank)
    # Small groups first: the fewer share a group, the nearer they are to where the order was broken. Who
    # left the common order shows only against a majority.
    ordered = sorted(members.values(), key=lambda each: (len(each), each))
    found = [one for ranks in ordered if (one := _among({rank: orders[rank] for rank in ranks})) is not None]
    return next((one for one in found if one.is_minority), found[0] if found else None)


def _order(recording: Recording) -> dict[_Key, tuple[int, Operation]]:
    """The open collectives of a rank with their places in its order."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for group in recording.groups.values():
        if len(group.ranks) > 1:
            kinds[group.description].append(group.name)
    ordinal = {name: (kind, at) for kind, names in kinds.items() for at, name in enumerate(names)}
    found: dict[_Key, tuple[int, Operation]] = {}
    for place, each in enumerate(recording.operations):
        if not each.is_p2p and each.state != "completed" and each.group in ordinal:
            found.setdefault((*ordinal[each.group], each.sequence), (place, each))
    return found


def _among(orders: Mapping[int, dict[_Key, tuple[int, Operation]]]) -> Reordering | None:
    votes: Counter[tuple[_Key, _Key]] = Counter()
    neighbours = {
        pair
        for order in orders.values()
        for pair in pairwise(sorted(order, key=lambda key: order[key][0]))
        if pair[0][:2] != pair[1][:2]
    }
    for first, second in neighbours:
        for order in orders.values():
            if first in order and second in order:
                pair = (first, second) if order[first][0] < order[second][0] else (second, first)
                votes[pair] += 1
    broken = [pair for pair in votes if pair in neighbours and votes[pair[1], pair[0]]]
    found: list[tuple[float, Reordering]] = []
    for first, second in broken:
        usual, other = votes[first, second], votes[second, first]
        if usual < other:
            continue
        ranks = tuple(
            rank
            for rank, order in sorted(orders.items())
            if first in order and second in order and order[second][0] < order[first][0]
        )
        one, two = (orders[ranks[0]][key][1] for key in (first, second))
        reordering = Reordering(ranks, _told(one, first), _told(two, second), other < usual, two.created)
        found.append((two.created or 0.0, reordering))
    return min(found, key=lambda each: (each[0], each[1].ranks))[1] if found else None


def _told(operation: Operation, key: _Key) -> str:
    return f"{operation.told}, number {operation.sequence} of {key[0] or operation.group}"
