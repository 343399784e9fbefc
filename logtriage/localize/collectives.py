"""Who is missing when every rank complains: the join of watchdog, gloo and wrapper messages.

The rules are those of Ascend FaultDiag's time-out analysis carried over to PyTorch's wording: ranks that
did not report while their peers did are suspects; if all reported, who is behind in sequence number; if
all are at the same number with different operations, the odd ones out (a desync).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from logtriage.localize.behind import Suspects, Waiting, behind_in_order, behind_in_waits, chain, late_comers
from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Progress, Trace, by_rank
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import key_of
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_WORK = regex(
    r"Rank (?P<rank>\d+)\]? .*?WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)"
    r"(?:, (?:NumelIn|TensorShape)=(?P<shape>\[[^\]]*\]|\d+))?"
)
_FINGERPRINT = regex(
    r"Rank (?P<rank>\d+) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(?P<seq>\d+), ?)?OpType=(?P<op>\w+)(?:, TensorShape=(?P<shape>\[[^\]]*\]))?"
)


def waits(scene: Scene) -> list[Waiting]:
    """The first collective that each rank's watchdog (or the debug wrapper's fingerprint) named."""
    found: dict[int, Waiting] = {}
    spoken: set[int] = set()
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            if "WorkNCCL(" in line.text and (match := _WORK.search(line.text[:4096])):
                rank = int(match["rank"])
                found.setdefault(
                    rank, Waiting(rank, int(match["seq"]), match["op"], match["shape"] or "", line)
                )
            if "CollectiveFingerPrint(" in line.text:
                for at, match in enumerate(_FINGERPRINT.finditer(line.text[:16_384])):
                    rank = int(match["rank"])
                    told = Waiting(rank, int(match["seq"] or 0), match["op"], match["shape"] or "", line)
                    known = found.setdefault(rank, told)
                    # Each names itself first: its own line says it better than that of a peer.
                    if at == 0 and rank not in spoken and replace(known, line=line) == told:
                        found[rank] = told
                    spoken |= {rank} if at == 0 else set()
    return list(found.values())


__all__ = [
    "Suspects",
    "Waiting",
    "accused",
    "mismatch",
    "missed_at_barrier",
    "naming",
    "odd_words",
    "silent_ranks",
    "waits",
]

# Operations in which every rank brings the same number of elements.
_SAME_SHAPE = {"ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Ranks that were in different collectives; `odd` are the minority, empty when the sides are even."""

    odd: tuple[int, ...]
    lines: tuple[Line, ...]
    text: str


def mismatch(waiting: Sequence[Waiting]) -> Mismatch | None:
    """Different operations at the same or neighbouring sequence numbers: the ranks' programs diverged.

    Groups number their collectives separately, so only waits whose numbers differ by at most one are held
    against each other. Shapes are compared where all ranks must agree on them.
    """
    if len(waiting) < 2:
        return None
    newest = max(each.sequence for each in waiting)
    near = [each for each in waiting if newest - each.sequence <= 1]
    sides: dict[tuple[str, int, str], list[Waiting]] = defaultdict(list)
    for each in near:
        shape = each.shape if each.operation in _SAME_SHAPE else ""
        sides[each.operation, each.sequence, shape].append(each)
    shapes: dict[tuple[str, int], set[str]] = defaultdict(set)
    for operation, sequence, shape in sides:
        shapes[operation, sequence].add(shape)
    if len({operation for operation, _, _ in sides}) < 2 and max(map(len, shapes.values())) < 2:
        return None
    ordered = sorted(sides.values(), key=lambda side: (len(side), side[0].rank))
    most = ordered[-1] if len(ordered[-2]) < len(ordered[-1]) else []
    odd = [each for side in ordered[:-1] for each in side]
    if not most or len(odd) * 2 >= len(near):
        odd = []  # no majority: the logs do not decide who left the path
    names = " against ".join(map(_told, ordered))
    lines = tuple(dict.fromkeys(side[0].line for side in ordered))
    return Mismatch(tuple(sorted(each.rank for each in odd)), lines, names)


def missed_at_barrier(scene: Scene, waiting: Sequence[Waiting]) -> Mismatch | None:
    """Ranks that their peers miss at a barrier, while they wait in a collective into which nobody else came.

    Who is late for a barrier waits for nobody; who waits elsewhere is on another path than its peers.
    """
    named, line = accused(scene)
    own = sorted((each for each in waiting if each.rank in named), key=lambda each: each.rank)
    if line is None or "barrier" not in line.text.lower() or not 0 < len(own) == len(named) == len(waiting):
        return None
    odd = tuple(each.rank for each in own)
    return Mismatch(odd, (line, own[0].line), f"{_told(own)} against a barrier, at which all others waited")


def _told(side: Sequence[Waiting]) -> str:
    first, ranks = side[0], ", ".join(str(each.rank) for each in side)
    return f"{first.operation}{f' of {first.shape}' if first.shape else ''} (ranks {ranks})"


# How messages name the rank that did not come: the peer in FaultDiag's errors, Horovod's and gloo's lists.
_ACCUSED = regex(
    r"remote rank: ?\[?(?P<a>\d{1,7})\b|\bdst_rank ?\[(?P<b>\d{1,7})\]|"
    r"/task:(?P<c>\d{1,7}) (?:has been set to ERROR|is (?:unavailable|lost)|heartbeat timeout)|"
    r"\bRanks? (?P<d>\d{1,7}(?:, ?\d{1,7})*) failed to pass monitoredBarrier|"
    r"\b[Rr]ank (?P<f>\d{1,7})(?: \([\w.-]+\))? (?:has not|never|did not) (?:enter|join|reach|arrive)|"
    r"\b[Rr]ank(?:s|\(s\))?:? ?[\[{(]?(?P<g>\d{1,7}(?:, ?\d{1,7})*)[\]})]? "
    r"(?:(?:have|has) not|never|did not|didn't) (?:enter|join|reach|arrive)|"
    r"\b(?i:ranks? (?:that (?:have |has )?)?not (?:yet )?(?:joined|arrived|entered|responding)"
    r"|(?:absent|stuck|unresponsive|stalled) ranks?|(?:timed out|still) waiting (?:for|on) rank(?:s|\(s\))"
    r"|ranks? (?:have )?(?:arrived|joined|reported), missing)"
    r":? ?[\[{(]?(?P<h>\d{1,7}(?:, ?\d{1,7})*)\b|"
    r"\b[Mm]issing ranks?:? ?[\[{(]?(?P<e>\d{1,7}(?:, ?\d{1,7})*)\b|"
    # below `The following tasks are unhealthy (stopped sending heartbeats):` or `Timed out task names:`
    r"(?:^|\]: |<std\w{3}>: ?)\s{0,8}/job:\w{1,40}/replica:\d{1,7}/task:(?P<i>\d{1,7})\s{0,8}$|"
    # `Additional GRPC error information from remote target /job:worker/replica:0/task:2:`
    r"\bfrom remote target /job:\w{1,40}/replica:\d{1,7}/task:(?P<j>\d{1,7})\b|"
    # below Horovod's `Missing ranks:`, each with the tensors for which it is awaited
    r"(?:^|<std\w{3}>: ?)(?P<k>\d{1,7}): "
    r"\[[\w./]{0,300}(?:llreduce|llgather|roadcast|lltoall)"
)


_ACCUSING = ("rank", "Rank", "/task:", "llreduce", "llgather", "roadcast", "lltoall")


def accused(scene: Scene) -> tuple[frozenset[int], Line | None]:
    """Ranks that others' messages name as absent, and the first line that does; none where they disagree."""
    votes: Counter[frozenset[int]] = Counter()
    first: dict[frozenset[int], Line] = {}

    def vote(named: Iterable[int], line: Line) -> None:
        ranks = frozenset(named)
        votes[ranks] += 1
        first.setdefault(ranks, line)

    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        lists: dict[int | None, tuple[set[int], Line]] = {}  # by writer, one that names a rank in each line
        for line in reading.lines:
            text = line.text[:2048]
            spoken = _ACCUSED.finditer(text) if any(word in text for word in _ACCUSING) else ()
            listed: set[int] = set()
            for found in spoken:
                ranks = next(group for group in found.groups() if group)
                named = {int(rank) for rank in ranks.split(",") if rank.strip()}
                if found["i"] or found["k"]:
                    listed |= named
                else:
                    vote(named, line)
            if listed:
                lists.setdefault(line.rank, (set(), line))[0].update(listed)
            elif lists and line.rank in lists:
                vote(*lists.pop(line.rank))
        for ended in lists.values():
            vote(*ended)
    if not votes:
        return frozenset(), None
    (most, count), *_ = votes.most_common(1)
    return (most, first[most]) if count * 2 > sum(votes.values()) else (frozenset(), None)


def silent_ranks(
    candidates: Sequence[Candidate], topology: Topology, progress: Progress, scene: Scene
) -> Suspects | None:
    """Ranks that say nothing while their peers complain, or that are behind the others.

    None where all ranks complain alike, where most are silent (their logs are then simply not here), or
    where the job's ranks are not known.
    """
    complaining = {
        each.rank
        for each in candidates
        if each.rank is not None
        and not each.recovered
        and each.failure_type.startswith(("collective.", "network.rendezvous"))
    }
    named, told = accused(scene)
    # Who is named and complains himself may only wait for others; those who are silent can be half a job.
    share = 3 if named & complaining else 2
    whole = max(topology.size, max(named | complaining, default=-1) + 1, 3)
    if named and len(named) * share <= whole:
        reason = "is the one that its peers name" if len(named) == 1 else "are those that their peers name"
        return Suspects(tuple(sorted(named)), reason, told=told)
    known = set(topology.ranks) | complaining
    size = max(topology.size, max(known, default=-1) + 1)
    if len(complaining) * 2 > size:
        known |= set(range(size))  # the numbers of the others tell of ranks that wrote nothing
    if not complaining or len(known) < 2:
        return None
    silent = known - complaining
    if silent and len(silent) <= max(1, len(known) // 3):
        return Suspects(tuple(sorted(silent)), "said nothing while its peers complained")
    behind = (
        _stuck_alone(candidates, known)
        or late_comers(candidates)
        or behind_in_order(scene, known)
        or behind_in_waits(waits(scene))
        or chain(scene)
    )
    if behind is not None:
        return behind
    traces = {rank: trace for rank, trace in by_rank(progress.traces).items() if rank in known}
    if len(traces) >= 2:
        top = max(trace.last.step for trace in traces.values())
        usual = _usual_skips(traces.values())
        late = {rank for rank, trace in traces.items() if trace.last.step < top - usual}
        if late and len(late) <= max(1, len(traces) // 3):
            return Suspects(tuple(sorted(late)), "stopped at an earlier step than its peers", sure=False)
    alone = [rank for rank in sorted(known) if odd_words(scene, topology, [rank])]
    if len(alone) == 1 and len(known) > 2:
        return Suspects(tuple(alone), "wrote something near its end that no other rank wrote", sure=False)
    return None


_STUCK = regex(r"watchdog got stuck for \d+ seconds")


def _stuck_alone(candidates: Iterable[Candidate], known: set[int]) -> Suspects | None:
    """The few ranks whose own watchdog stood still, in a call of NCCL or CUDA, where the others gave up."""
    stuck: set[int] = set()
    waited: set[int] = set()
    for each in candidates:
        if each.rank is not None and each.failure_type.startswith(("collective.", "cuda.")):
            if _STUCK.search(each.line.text[:1000]):
                stuck.add(each.rank)
            elif each.failure_type == "collective.timeout":
                waited.add(each.rank)
    alone = stuck - waited
    if not alone or len(alone) * 3 > len(known) or not waited:
        return None
    return Suspects(tuple(sorted(alone)), "stood still itself while its peers waited in vain")


FAR_BEYOND = 4


def _usual_skips(traces: Iterable[Trace]) -> int:
    """Of how many steps a rank may tell nothing by chance: of none where they report all of them.

    Some report only now and then. Of many such ranks one or the other is far beyond what is usual.
    """
    skips = sorted(
        later.step - earlier.step
        for trace in traces
        for earlier, later in pairwise(trace.points)
        if later.step > earlier.step
    )
    usual = skips[len(skips) * 9 // 10] if skips else 1
    return usual if usual == 1 else FAR_BEYOND * usual


def naming(scene: Scene, topology: Topology, rank: int) -> Line | None:
    """The first of the last words of another rank that name this rank beside its host, in whatever words.

    Not what is said so all along: who sends to the next rank names it with every line.
    """
    host = topology.host_of_rank.get(rank)
    if host is None:
        return None
    number = re.compile(rf"(?<![\d.:])(?<!\d-){rank}(?![\d.:])")
    for reading in scene.readings:
        if reading.source.role not in (SourceRole.WORKER, SourceRole.MERGED):
            continue
        usual: set[bytes] | None = None
        for line in reading.lines[-_ODD_TAIL * _WRITERS :]:
            if host not in line.message or " NCCL " in line.text or topology.rank(line) in (None, rank):
                continue
            if not number.search(line.message[:1000].replace(host, "")):
                continue
            if usual is None:
                early = reading.lines[: len(reading.lines) // 2]
                usual = {key_of(each.message) for each in early if host in each.message}
            if key_of(line.message) not in usual:
                return line
    return None


_WRITERS = 8  # of one file
_ODD_TAIL = 60  # lines of each rank's end that are compared
_TRIVIAL = regex(r"^[\W\d_]*$")
# How a rank that waited in vain writes its dump: one or the other is the first at it, or is asked by others.
_DUMPS = regex(r"ProcessGroupNCCL\.cpp:\d+\].{0,160}?(?:First PG on this rank|\b[Dd]ump|acquire GIL)")


def odd_words(scene: Scene, topology: Topology, ranks: Sequence[int]) -> list[Line]:
    """What the suspects wrote near their end and no other rank wrote: L4's spatial comparison on last words.

    Lines are compared without their digits, also with what they wrote themselves in the first half. At most
    two, the last ones; none where other ranks' output is not there to compare with, or where the suspects
    differ all along.
    """
    ends: dict[int, list[Line]] = defaultdict(list)
    for reading in scene.readings:
        source = reading.source
        if source.role not in (SourceRole.WORKER, SourceRole.MERGED) or source.stream == "stderr":
            continue
        for line in reading.lines:
            rank = topology.rank(line)
            if rank is not None and line.message.strip():
                ends[rank].append(line)
    if not any(rank in ends for rank in ranks) or not any(rank not in ranks for rank in ends):
        return []
    usual = {
        without_digits(line.message) for rank, lines in ends.items() if rank not in ranks for line in lines
    }
    odd = []
    for rank in ranks:
        lines = ends.get(rank, [])
        # A rank that reports for all does so long before the end.
        early = lines[: min(len(lines) // 2, len(lines) - _ODD_TAIL)] if len(lines) > _ODD_TAIL else []
        habits = {without_digits(line.message) for line in early}
        odd += [
            line
            for line in lines[-_ODD_TAIL:]
            if not _TRIVIAL.match(line.message)
            and not ("ProcessGroupNCCL" in line.text and _DUMPS.search(line.text[:1000]))
            and without_digits(line.message) not in usual
            and without_digits(line.message) not in habits
        ]
    return odd[-2:] if len(odd) <= _ODD_TAIL // 4 else []
