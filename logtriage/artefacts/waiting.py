"""Which rank waits in what, and for whom, by the flight recordings of all ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logtriage.artefacts.recording import Group, Operation, Recording
from logtriage.artefacts.standing import GroupStanding, is_joint, transfers


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank in an operation that is not completed, and how the others of the group stand to it.

    `absent` have not joined it by their dumps; of `unrecorded` there is no dump, so they may not have.
    """

    rank: int
    group: Group
    number: int
    operation: Operation
    absent: tuple[int, ...]
    joined: tuple[int, ...]
    unrecorded: tuple[int, ...] = ()

    def is_of(self, operation: Operation) -> bool:
        """Whether an operation is another rank's side of this one."""
        own = self.operation
        return (operation.group, operation.sequence, operation.is_p2p) == (
            own.group,
            own.sequence,
            own.is_p2p,
        )

    @property
    def told(self) -> str:
        if self.operation.is_p2p:
            return f"{self.operation.told} in {self.group.title}"
        return f"{self.operation.told}, number {self.number} of {self.group.title}"


def older_dumps(groups: Iterable[GroupStanding]) -> frozenset[int]:
    """Ranks whose dump was taken before the others': peers completed together what it had not yet issued."""
    found = set()
    for each in groups:
        names = {
            operation.name
            for standing in each.by_rank.values()
            for operations in standing.open.values()
            for operation in operations
        }
        if not names or not all(map(is_joint, names)):
            continue
        done = max((standing.completed or 0 for standing in each.by_rank.values()), default=0)
        found |= {
            rank
            for rank, standing in each.by_rank.items()
            if standing.enqueued is not None and standing.enqueued < done
        }
    return frozenset(found)


def collective_waits(
    groups: Iterable[GroupStanding], recorded: Iterable[int], older: frozenset[int]
) -> list[Wait]:
    """The first open collective of every rank in every group."""
    waits = []
    known = set(recorded)
    for each in groups:
        fresh = {rank: standing for rank, standing in each.by_rank.items() if rank not in older}
        for rank, standing in fresh.items():
            number = standing.first_open
            if number is None:
                continue
            joined = tuple(other for other, its in fresh.items() if its.has_joined(number))
            absent = tuple(other for other in fresh if other not in joined)
            unrecorded = tuple(other for other in each.members if other not in known)
            operation = standing.open[number][0]
            waits.append(Wait(rank, each.group, number, operation, absent, joined, unrecorded))
    return waits


def transfer_waits(recordings: Mapping[int, Recording], older: frozenset[int]) -> list[Wait]:
    """Sends without their receives and receives without their sends; the k-th goes with the k-th."""
    told = transfers(recordings)
    waits = []
    for group, source, target in sorted(told.sends.keys() | told.receives.keys()):
        if {source, target} & older:
            continue
        sends = told.sends.get((group, source, target), [])
        receives = told.receives.get((group, source, target), [])
        for rank, peer, own, its in ((source, target, sends, receives), (target, source, receives, sends)):
            if not own or rank not in recordings:
                continue
            known = recordings[rank].groups.get(group) or Group(group, "", ())
            unrecorded = () if peer in recordings else (peer,)
            absent = (peer,) if not unrecorded and len(own) > len(its) else ()
            joined = (rank,) if absent or unrecorded else (rank, peer)
            operation = own[len(its)] if absent else own[0]
            waits.append(Wait(rank, known, operation.sequence, operation, absent, joined, unrecorded))
    return waits


def stalled_ranks(
    groups: Iterable[GroupStanding], older: frozenset[int]
) -> dict[int, tuple[Wait, tuple[int, ...]]]:
    """Ranks with an open collective that peers completed, although none can without all."""
    found: dict[int, tuple[Wait, tuple[int, ...]]] = {}
    for each in groups:
        for rank, standing in each.by_rank.items():
            number = standing.first_open
            if number is None or rank in older or not is_joint(standing.open[number][0].name):
                continue
            past = tuple(
                other
                for other, its in each.by_rank.items()
                if (its.completed or -1) >= number and other != rank
            )
            if past:
                wait = Wait(rank, each.group, number, standing.open[number][0], (), (rank, *past))
                if rank not in found or len(past) > len(found[rank][1]):
                    found[rank] = (wait, past)
    return found


def edges_of(waits: Iterable[Wait], stalled: Iterable[int]) -> dict[int, set[int]]:
    """Rank to the ranks that it waits for.

    A rank in operations that all have joined waits for those that left no dump, or else for those that are
    held up elsewhere.
    """
    edges: dict[int, set[int]] = defaultdict(set)
    for each in waits:
        if each.rank not in stalled:
            edges[each.rank].update(each.absent)
    sure = {rank for rank, targets in edges.items() if targets} | set(stalled)
    for each in waits:
        if each.rank not in sure:
            edges[each.rank].update(each.unrecorded)
    held = {rank for rank, targets in edges.items() if targets} | set(stalled)
    for each in waits:
        if each.rank not in held:
            edges[each.rank].update(rank for rank in each.joined if rank in held)
    return edges
