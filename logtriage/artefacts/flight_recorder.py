"""Who holds the others up, by the flight recordings of a job's ranks.

The checks are those of Mycroft (SOSP'25) on PyTorch's recorder: different operations under one number,
ranks that never joined, and groups that wait for each other. Waiting is followed from rank to rank to
where it ends: a rank that waits for another is a victim itself. Added to them: a rank that still waits in
what its peers completed, a rank that left no dump, and a dump that is older than the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from logtriage.artefacts.comparison import Comparison, Entry, Fault, Point, told_ranks
from logtriage.artefacts.order import reordered
from logtriage.artefacts.recording import Group, Operation, Recording
from logtriage.artefacts.standing import GroupStanding, newest, standings
from logtriage.artefacts.waiting import (
    Wait,
    collective_waits,
    edges_of,
    older_dumps,
    stalled_ranks,
    transfer_waits,
)
from logtriage.model import Frame


def compare(recordings: Iterable[Recording]) -> Comparison | None:
    """The finding of all recordings; None for fewer than two ranks, or where nothing waits."""
    by_rank = newest(recordings)
    if len(by_rank) < 2:
        return None
    groups = standings(by_rank)
    older = older_dumps(groups)
    waits = [*collective_waits(groups, by_rank, older), *transfer_waits(by_rank, older)]
    if not waits:
        return None
    stalled = stalled_ranks(groups, older)
    world = {rank for each in groups for rank in each.members} | set(by_rank)
    scene = _Scene(by_rank, groups, waits, stalled, older, tuple(sorted(world - set(by_rank))))
    return (
        _mismatch(scene) or _absent(scene) or _crossed(scene) or _not_started(scene) or _reordered(scene)
        or _joined(scene)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scene:
    recordings: Mapping[int, Recording]
    groups: Sequence[GroupStanding]
    waits: Sequence[Wait]
    stalled: Mapping[int, tuple[Wait, tuple[int, ...]]]  # with the peers that are past it
    older: frozenset[int]
    unrecorded: tuple[int, ...]

    def finding(
        self, fault: Fault, ranks: Iterable[int], told: str, points: Iterable[Point], wait: Wait
    ) -> Comparison:
        blamed = tuple(sorted(ranks))
        here = next((frame for rank in blamed if (frame := self._frame(rank, wait)) is not None), None)
        # Who waited longest says it best; it is the first sign of the job's end as well.
        begun = [each.operation.created for each in self.waits if each.operation.created is not None]
        return Comparison(
            fault=fault,
            ranks=blamed,
            told=told,
            points=tuple(points),
            recorded=tuple(self.recordings),
            waiting=tuple(sorted({each.rank for each in self.waits} - set(blamed))),
            unrecorded=self.unrecorded,
            older=tuple(sorted(self.older)),
            there=wait.operation.user_frame,
            here=here,
            operation=wait.told,
            since=min(begun, default=None),
            entries=self._entries(blamed, wait),
        )

    def _frame(self, rank: int, wait: Wait) -> Frame | None:
        """The place from which a rank issued its side of an operation, or else what it issued last."""
        operations = self.recordings[rank].operations if rank in self.recordings else ()
        framed = [each for each in operations if each.user_frame is not None]
        return next(
            (each.user_frame for each in framed if wait.is_of(each)),
            framed[-1].user_frame if framed else None,
        )

    def _entries(self, blamed: Sequence[int], wait: Wait) -> tuple[Entry, ...]:
        """Of a rank that waits what it waits in, of those to blame what they are in or did last."""
        chosen = [(wait.rank, wait.operation, "rank {rank} waits in this")]
        for rank in blamed[:3]:
            operations = self.recordings[rank].operations if rank in self.recordings else ()
            same = [each for each in operations if wait.is_of(each)]
            if same:
                chosen.append((rank, same[0], "rank {rank} is in this"))
            elif operations:
                chosen.append((rank, operations[-1], "the last that rank {rank} issued"))
        unique = {(rank, each.record): (each, why) for rank, each, why in reversed(chosen)}
        return tuple(
            Entry(self.recordings[rank].file, rank, record, why.format(rank=rank))
            for (rank, record), (_, why) in reversed(unique.items())
        )

    def point(self, rank: int, text: str, time: float | None = None) -> Point:
        recording = self.recordings[rank]
        return Point(text, recording.file, rank, time or recording.last_time or None)


# --- what it means ---------------------------------------------------------------------------------

# Operations in which all ranks bring the same number of elements.
_SAME_SIZE = {
    "all_reduce", "allreduce_coalesced", "all_reduce_barrier", "broadcast", "reduce", "_all_gather_base",
    "_reduce_scatter_base",
}  # fmt: skip


def _signature(operations: Sequence[Operation]) -> tuple[object, ...]:
    """What must be alike on all ranks: the operation, its types, and its size where sizes must agree."""
    return tuple(
        (
            each.name,
            (each.elements_in, each.elements_out) if each.name in _SAME_SIZE else None,
            each.types,
        )
        for each in operations
    )


def _mismatch(scene: _Scene) -> Comparison | None:
    """Different operations under one number of one group, of which none completed."""
    for each in scene.groups:
        opened = {
            rank: standing
            for rank, standing in each.by_rank.items()
            if standing.open and rank not in scene.older and rank not in scene.stalled
        }
        for number in sorted({min(standing.open) for standing in opened.values()}):
            there = {rank: its.open[number] for rank, its in opened.items() if number in its.open}
            sides: dict[tuple[object, ...], list[int]] = defaultdict(list)
            for rank, operations in there.items():
                sides[_signature(operations)].append(rank)
            typed = {signature for signature in sides if any(one[2] for one in signature)}  # type: ignore[index]
            if len(sides) < 2 or (len({_names(one) for one in sides}) < 2 and len(typed) < len(sides)):
                continue
            ordered = sorted(sides.values(), key=lambda side: (-len(side), side))
            usual, *others = ordered
            elsewhere = _usual_elsewhere(scene, each.group, number)
            right = next((side for side in ordered if _signature(there[side[0]]) == elsewhere), None)
            if right is not None:  # groups of the same kind run the same program
                usual, others = right, [side for side in ordered if side is not right]
            decided = right is not None or len(usual) > len(others[0])
            blamed = [rank for side in others for rank in side] if decided else []
            wait = Wait(usual[0], each.group, number, there[usual[0]][0], (), tuple(usual))
            told = (
                f"number {number} of {each.group.title} is {_operations(there[usual[0]])} on "
                f"{told_ranks(usual)} but "
                + " and ".join(f"{_operations(there[side[0]])} on {told_ranks(side)}" for side in others)
            )
            points = [
                scene.point(side[0], f"issued {_operations(there[side[0]])}{_place(there[side[0]][0])}")
                for side in ordered[:4]
            ]
            found = scene.finding(Fault.MISMATCH, blamed, told, points, wait)
            if found.waiting or blamed:
                return found
    return None


def _usual_elsewhere(scene: _Scene, group: Group, number: int) -> tuple[object, ...] | None:
    """What most ranks of other groups of the same kind issued under this number, if they agree."""
    found: dict[int, list[Operation]] = defaultdict(list)
    for rank, recording in scene.recordings.items():
        for operation in recording.operations:
            its = recording.groups.get(operation.group)
            if (
                its is not None
                and its != group
                and its.description == group.description
                and len(its.ranks) == len(group.ranks)
                and operation.sequence == number
                and not operation.is_p2p
            ):
                found[rank].append(operation)
    if not group.description or not found:
        return None
    votes = Counter(map(_signature, found.values()))
    (usual, count), *_ = votes.most_common(1)
    return usual if count * 2 > len(found) else None


def _names(signature: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(one[0] for one in signature)  # type: ignore[index]


def _operations(operations: Sequence[Operation]) -> str:
    first = operations[0].told
    return first if len(operations) == 1 else f"{len(operations)} operations from {first}"


def _place(operation: Operation) -> str:
    frame = operation.user_frame
    return f", issued in {frame.function} ({frame.path}:{frame.line})" if frame else ""


def _absent(scene: _Scene) -> Comparison | None:
    """Where waiting ends: ranks that others wait for and that wait for nobody, and those that stalled."""
    edges = edges_of(scene.waits, scene.stalled)
    wanted = {rank for targets in edges.values() for rank in targets}
    ends = {rank for rank in wanted if not edges.get(rank)} | set(scene.stalled)
    lacking = ends - set(scene.recordings)
    ends -= lacking
    if not ends:
        return _no_dump(scene, lacking) if lacking else None
    recorded = len(scene.recordings) - len(scene.older)
    if len(ends) * 2 > recorded:
        few = [each for each in scene.waits if each.absent and len(each.joined) * 2 < recorded]
        blamed = sorted({rank for each in few for rank in each.joined} - set(scene.stalled))
        if not few or len(blamed) * 2 >= recorded:
            return None
        text = f"only {told_ranks(blamed)} issued {few[0].told}; the others of the group never did"
        points = [scene.point(few[0].rank, text + _place(few[0].operation), few[0].operation.created)]
        return scene.finding(Fault.ALONE, blamed, text, points, few[0])
    # The widest group in which a rank is missed shows it best.
    missed = {
        rank: max(
            (each for each in scene.waits if rank in each.absent),
            key=lambda each: (len(each.joined), each.number, -each.rank),
        )
        for rank in sorted(ends - set(scene.stalled))
    }
    points = [
        scene.point(
            rank,
            f"has not joined {wait.told}{_last(scene.recordings[rank])}",
            wait.operation.created,
        )
        for rank, wait in missed.items()
    ]
    told = [
        f"{told_ranks(ranks)} never joined {wait.told}, in which {told_ranks(wait.joined)} wait"
        for wait, ranks in _together(missed)
    ]
    stuck = {rank: wait for rank, (wait, _) in sorted(scene.stalled.items())}
    for wait, ranks in _together(stuck):
        past = told_ranks(scene.stalled[ranks[0]][1])
        verb, whose = ("waits", "its") if len(ranks) == 1 else ("wait", "their")
        told.append(
            f"{told_ranks(ranks)} still {verb} in {wait.told}, which {past} completed: "
            f"{whose} GPU or process stands still"
        )
        points += [
            scene.point(
                rank, f"still waits in {stuck[rank].told}, which {past} completed", wait.operation.created
            )
            for rank in ranks
        ]
    lead = next(iter((missed or stuck).values()))
    fault = Fault.ABSENT if missed else Fault.STALLED
    return scene.finding(fault, ends, "; ".join(told[:3]), points, lead)


def _waiting(wait: Wait) -> str:
    return f"{told_ranks(wait.joined)} {'waits' if len(wait.joined) == 1 else 'wait'} in {wait.told}"


def _together(waits: Mapping[int, Wait]) -> list[tuple[Wait, list[int]]]:
    """Ranks of which the same operation tells."""
    found: dict[tuple[Group, int], tuple[Wait, list[int]]] = {}
    for rank, wait in waits.items():
        found.setdefault((wait.group, wait.number), (wait, []))[1].append(rank)
    return list(found.values())


def _last(recording: Recording) -> str:
    """What a rank did last, where its dump still shows it."""
    if not recording.operations:
        return ""
    last = recording.operations[-1]
    of = f" of {recording.groups[last.group].title}" if last.group in recording.groups else ""
    return f"; its last operation was {last.name}{of}{_place(last)}"


def _crossed(scene: _Scene) -> Comparison | None:
    """Every rank that is missed waits itself: the same program cannot issue two operations in two orders."""
    missed = [each for each in scene.waits if each.absent and each.rank not in scene.stalled]
    if not missed:
        return None
    votes = Counter(rank for each in missed for rank in each.absent if len(each.absent) < len(each.joined))
    blamed: list[int] = []
    if votes:
        most = max(votes.values())
        blamed = sorted(rank for rank, count in votes.items() if count == most)
        if len(blamed) * 2 >= len(scene.recordings):
            blamed = []
    first = next((each for each in missed if set(blamed) & set(each.absent)), missed[0])
    back = next(
        (each for each in missed if each.rank in first.absent and set(each.absent) & set(first.joined)), None
    )
    told = f"{_waiting(first)} for {told_ranks(first.absent)}"
    if back is not None:
        told += f", while {_waiting(back)} for {told_ranks(back.absent)}"
    points = [
        scene.point(each.rank, f"waits in {each.told} for {told_ranks(each.absent)}{_place(each.operation)}",
                    each.operation.created)
        for each in (first, back) if each is not None
    ]  # fmt: skip
    return scene.finding(Fault.CROSSED, blamed, told, points, first)


def _not_started(scene: _Scene) -> Comparison | None:
    """All joined; on most GPUs it runs, on few it has not begun: something before it stands still there."""
    for each in scene.groups:
        states: dict[int, dict[int, str]] = defaultdict(dict)
        for rank, standing in each.by_rank.items():
            if standing.first_open is not None and rank not in scene.older:
                states[standing.first_open][rank] = standing.open[standing.first_open][0].state
        for number, by_rank in states.items():
            waiting = [rank for rank, state in by_rank.items() if state == "scheduled"]
            if not waiting or len(waiting) * 2 >= len(by_rank):
                continue
            wait = next(one for one in scene.waits if one.group == each.group and one.number == number)
            told = f"the GPU of {told_ranks(waiting)} has not begun {wait.told}, which runs on the others"
            points = [scene.point(rank, f"has not begun {wait.told}") for rank in waiting]
            return scene.finding(Fault.NOT_STARTED, waiting, told, points, wait)
    return None


def _no_dump(scene: _Scene, lacking: set[int]) -> Comparison | None:
    """All that left a dump wait in the end for few that left none: those ended first, or hang."""
    if len(lacking) * 3 > len(scene.unrecorded) + len(scene.recordings):
        return None
    wait = max(
        (each for each in scene.waits if lacking & set(each.unrecorded)),
        key=lambda each: (len(each.joined), -each.rank),
    )
    told = f"{told_ranks(lacking)} left no dump, while {_waiting(wait)}"
    points = [scene.point(wait.rank, f"waits in {wait.told}{_place(wait.operation)}", wait.operation.created)]
    return scene.finding(Fault.NO_DUMP, lacking, told, points, wait)


def _reordered(scene: _Scene) -> Comparison | None:
    """All joined the same operations, some in another order: each group waits for the other."""
    found = reordered({rank: one for rank, one in scene.recordings.items() if rank not in scene.older})
    if found is None:
        return None
    wait = max(scene.waits, key=lambda each: (len(each.joined), -each.rank))
    points = [
        scene.point(rank, f"issued {found.second} before {found.first}", found.time) for rank in found.ranks
    ]
    told = f"{told_ranks(found.ranks)} issued {found.second} before {found.first}, the others after it"
    blamed = found.ranks if found.is_minority else ()
    return scene.finding(Fault.CROSSED, blamed, told, points, wait)


def _joined(scene: _Scene) -> Comparison | None:
    if not all(each.tells_completion for each in scene.recordings.values()):
        return None  # it may as well have completed
    wait = max(scene.waits, key=lambda each: (len(each.joined), -each.rank))
    told = f"all of {told_ranks(wait.joined)} joined {wait.told} alike, and it did not complete on any"
    points = [scene.point(wait.rank, f"waits in {wait.told}{_place(wait.operation)}", wait.operation.created)]
    return scene.finding(Fault.JOINED, (), told, points, wait)
