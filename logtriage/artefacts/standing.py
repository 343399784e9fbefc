"""How far each rank is in each process group, by the flight recordings of all ranks.

A group's collectives are numbered alike on all of its ranks, so ranks are compared by number. The dumps
may hold all recent operations or only those not completed, and may be taken at different times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from logtriage.artefacts.recording import MOST_MEMBERS, Group, Operation, Recording

# Collectives that no rank can complete before all have joined: what a peer completed, all joined.
_JOINT = (
    "all_", "allreduce", "allgather", "_all_", "reduce_scatter", "_reduce_scatter", "barrier", "alltoall",
)  # fmt: skip

GroupKey = tuple[str, tuple[int, ...]]


def is_joint(name: str) -> bool:
    return name.lower().startswith(_JOINT)


@dataclass(slots=True)
class Standing:
    """One rank in one group. Numbers are None where the dump does not tell.

    `enqueued` and `completed` are the last collectives that the rank issued and finished; `open` holds
    those that it issued and did not finish, by number.
    """

    rank: int
    enqueued: int | None = None
    completed: int | None = None
    open: dict[int, list[Operation]] = field(default_factory=dict)

    @property
    def first_open(self) -> int | None:
        return min(self.open, default=None)

    def has_joined(self, number: int) -> bool:
        return max(self.enqueued or -1, self.completed or -1) >= number


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group with what is known of its ranks; `members` are global ranks, also those without a dump."""

    group: Group
    members: tuple[int, ...]
    by_rank: Mapping[int, Standing]


@dataclass(frozen=True, slots=True)
class Transfers:
    """Sends and receives that are not completed, by (group, sending rank, receiving rank); global ranks."""

    sends: Mapping[tuple[str, int, int], list[Operation]]
    receives: Mapping[tuple[str, int, int], list[Operation]]


# Ranks that wait for each other stop within seconds: what ended so much earlier is of another attempt.
SAME_ATTEMPT_SECONDS = 3600.0


def newest(recordings: Iterable[Recording]) -> dict[int, Recording]:
    """One recording a rank: of several (attempts, repeated dumps) the one that saw the latest operation."""
    recordings = list(recordings)
    last = max((each.last_time for each in recordings), default=0.0)
    recordings = [each for each in recordings if not 0 < each.last_time < last - SAME_ATTEMPT_SECONDS]
    kept: dict[int, Recording] = {}
    for each in recordings:
        before = kept.get(each.rank)
        if before is None or each.last_time > before.last_time:
            kept[each.rank] = each
    return dict(sorted(kept.items()))


def standings(recordings: Mapping[int, Recording]) -> list[GroupStanding]:
    """Every group in which any rank issued a collective, in a fixed order."""
    by_group: dict[GroupKey, dict[int, list[Operation]]] = defaultdict(dict)
    titles: dict[GroupKey, Group] = {}
    mixed: set[GroupKey] = set()  # groups with sends and receives: the watchdog's counters mix them in
    for rank, recording in recordings.items():
        for name, group in recording.groups.items():
            by_group[name, group.ranks].setdefault(rank, [])
            titles.setdefault((name, group.ranks), group)
        for operation in _settled(recording.operations):
            ranks = recording.groups[operation.group].ranks if operation.group in recording.groups else ()
            key = (operation.group, ranks)
            if operation.is_p2p:
                mixed.add(key)
            else:
                by_group[key].setdefault(rank, []).append(operation)
    found = []
    for key, ranks_here in sorted(by_group.items()):
        members = titles[key].ranks
        if titles[key].description == "default_pg" and not members:
            # All ranks are in it; a number that is left out is a rank without a dump.
            members = tuple(range(min(max(recordings) + 1, MOST_MEMBERS)))
            ranks_here = {rank: ranks_here.get(rank, []) for rank in recordings}
        known = {rank: _standing(rank, operations) for rank, operations in ranks_here.items()}
        _close_guessed(known, recordings)
        if key not in mixed:
            _count_by_watchdog(known, {rank: recordings[rank] for rank in known}, key[0])
        if any(each.enqueued is not None for each in known.values()):
            found.append(GroupStanding(titles[key], members or tuple(sorted(known)), known))
    return found


def _settled(operations: Sequence[Operation]) -> list[Operation]:
    """Without the markers of coalesced launches, whose parts have no events and so no state of their own.

    A part is as far as its marker. Where the marker is not there while several parts are, it was left out
    of the dump because it was completed.
    """
    launches: dict[tuple[str, bool, int], list[Operation]] = defaultdict(list)
    for each in operations:
        launches[each.group, each.is_p2p, each.sequence].append(each)
    settled = []
    for each in operations:
        parts = launches[each.group, each.is_p2p, each.sequence]
        if len(parts) == 1 or each.sequence < 0:
            settled.append(each)
            continue
        markers = [part for part in parts if part.name == "coalesced"]
        state = markers[-1].state if markers else "completed" if each.is_p2p else each.state
        if each.name != "coalesced":
            settled.append(_with_state(each, state))
    return settled


def _with_state(operation: Operation, state: str) -> Operation:
    return operation if operation.state == state else replace(operation, state=state)


def _standing(rank: int, operations: Sequence[Operation]) -> Standing:
    standing = Standing(rank)
    done = max((each.sequence for each in operations if each.state == "completed"), default=None)
    for each in operations:
        standing.enqueued = max(standing.enqueued or 0, each.sequence)
        # A group's collectives run in order: what came before a completed one is completed.
        if each.state != "completed" and (done is None or each.sequence > done):
            standing.open.setdefault(each.sequence, []).append(each)
    first = standing.first_open
    standing.completed = done if first is None else max(done or 0, first - 1)
    return standing


def _close_guessed(known: Mapping[int, Standing], recordings: Mapping[int, Recording]) -> None:
    """What is only thought to be open is completed where a peer went on to the next."""
    furthest = max((standing.enqueued or 0 for standing in known.values()), default=0)
    for rank, standing in known.items():
        if not recordings[rank].tells_completion and standing.enqueued and standing.enqueued < furthest:
            standing.open.clear()
            standing.completed = standing.enqueued


def _count_by_watchdog(
    known: Mapping[int, Standing], recordings: Mapping[int, Recording], group: str
) -> None:
    """Fill in what only the watchdog's counters tell, if they agree with the entries wherever both are."""
    counted = {
        rank: recording.status[group]
        for rank, recording in recordings.items()
        if group in recording.status and recording.tells_completion  # others count what failed as well
    }
    both = [(known[rank].enqueued, told) for rank, told in counted.items() if known[rank].open]
    if not both or any(enqueued != told.enqueued for enqueued, told in both):
        return
    for rank, told in counted.items():
        standing = known[rank]
        if told.enqueued >= 0:
            standing.enqueued = max(standing.enqueued or 0, told.enqueued)
        if told.completed >= 0:
            standing.completed = max(standing.completed or 0, told.completed)
            for number in [each for each in standing.open if each <= told.completed]:
                del standing.open[number]  # a part of a launch whose marker was left out of the dump


def transfers(recordings: Mapping[int, Recording]) -> Transfers:
    """Sends and receives that wait, with both ends as global ranks."""
    sends: dict[tuple[str, int, int], list[Operation]] = defaultdict(list)
    receives: dict[tuple[str, int, int], list[Operation]] = defaultdict(list)
    for recording in recordings.values():
        for each in _settled(recording.operations):
            if each.source is None or each.target is None or each.state == "completed":
                continue
            ranks = recording.groups[each.group].ranks if each.group in recording.groups else ()
            ends = [
                one if not ranks else ranks[one] if one < len(ranks) else None
                for one in (each.source, each.target)
            ]
            if ends[0] is not None and ends[1] is not None:
                (sends if each.name == "send" else receives)[each.group, ends[0], ends[1]].append(each)
    return Transfers(dict(sends), dict(receives))
