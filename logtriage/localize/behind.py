"""Who is behind when every rank complains: late reports, smaller numbers, and chains of ranks that wait.

The order is that of Ascend FaultDiag's time-out rules: a report that comes later than the time-out allows,
then the smaller index of the operation, then the end of the chain of who waits for whom (all of a circle).
The join of `last enqueued` against `last completed` is the one that NeMo's triage notes recommend: a rank
that has completed all that it enqueued never entered the collective in which its peers wait.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Trace, by_rank
from logtriage.localize.scene import Scene
from logtriage.model import Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits


@dataclass(frozen=True, slots=True)
class Suspects:
    ranks: tuple[int, ...]
    reason: str
    sure: bool = True  # False: only an oddity, which a process that plainly ended first outweighs
    told: Line | None = None  # the line that names them


@dataclass(frozen=True, slots=True)
class Waiting:
    """What one rank was waiting in when it gave up."""

    rank: int
    sequence: int
    operation: str
    shape: str
    line: Line


_TIMEOUT = regex(r"Timeout\(ms\)=(\d{1,12})")
DEFAULT_TIMEOUT_SECONDS = 600.0  # of PyTorch's NCCL groups; lines that tell their own count instead


def late_comers(candidates: Iterable[Candidate]) -> Suspects | None:
    """The few ranks that gave up later than the first ones by more than the time-out: they arrived late."""
    reported: dict[int, float] = {}
    patience = 0.0
    for each in candidates:
        if each.failure_type == "collective.timeout" and each.rank is not None and each.time is not None:
            reported[each.rank] = min(reported.get(each.rank, each.time), each.time)
            if (told := _TIMEOUT.search(each.line.text[:4096])) is not None:
                patience = max(patience, int(told[1]) / 1000)
    if len(reported) < 3:
        return None
    first = min(reported.values())
    late = [rank for rank, time in reported.items() if time > first + (patience or DEFAULT_TIMEOUT_SECONDS)]
    if not late or len(late) * 3 > len(reported):
        return None
    return Suspects(
        tuple(sorted(late)), "gave up later than its peers by more than the time-out: it came late"
    )


_STANDING = regex(
    r"(?:PG ID (?P<group>\w+)[^\n]{0,200}?)?Rank (?P<rank>\d{1,7})\][^\n]*?[Ll]ast enqueued (?:NCCL )?work: "
    r"(?P<seq>-?\d{1,18})(?:[^\n]{0,80}?last completed (?:NCCL )?work: (?P<done>-?\d{1,18}))?"
)


def behind_in_order(scene: Scene, known: set[int]) -> Suspects | None:
    """Ranks whose last enqueued work is older than that of most others of their group, or all completed."""
    groups: dict[str, dict[int, tuple[int, int | None]]] = defaultdict(dict)
    for reading in scene.readings:
        for line in reading.lines:
            if "ast enqueued" in line.text and (match := _STANDING.search(line.text[:4096])):
                done = int(match["done"]) if match["done"] else None
                groups[match["group"] or ""].setdefault(int(match["rank"]), (int(match["seq"]), done))
    for standing in groups.values():
        usual, votes = Counter(seq for seq, _ in standing.values()).most_common(1)[0]
        if len(standing) < 2 or votes * 2 <= len(standing):
            continue
        fewer = {rank for rank, (seq, _) in standing.items() if seq < usual and rank in known}
        if fewer:
            return Suspects(tuple(sorted(fewer)), "has enqueued fewer collectives than its peers")
        idle = {rank for rank, (seq, done) in standing.items() if done == seq and rank in known}
        if idle and len(idle) * 3 <= len(standing):
            return Suspects(tuple(sorted(idle)), "has completed all that it enqueued while its peers wait")
    return None


def behind_in_waits(waiting: Sequence[Waiting]) -> Suspects | None:
    """Ranks that wait in an earlier collective than most of their peers, in the same operation."""
    by_operation: dict[str, list[Waiting]] = defaultdict(list)
    for each in waiting:
        by_operation[each.operation].append(each)
    for same in by_operation.values():
        usual, votes = Counter(each.sequence for each in same).most_common(1)[0]
        late = [each.rank for each in same if each.sequence < usual]
        if late and votes * 2 > len(same) and len(late) * 3 <= len(same):
            return Suspects(tuple(sorted(late)), "waits in an earlier collective than its peers")
    return None


SAME_STEPS = 3  # that a rank and its peers reported last in common


def stopped_first(traces: Iterable[Trace]) -> tuple[Trace, ...]:
    """The few ranks that reported the same steps as their peers and fewer; all peers came to one step.

    None where the peers differ: then it is chance, or a buffer, up to where each was written.
    """
    ranked = by_rank(traces)
    top = max((trace.last.step for trace in ranked.values()), default=0)
    late = tuple(trace for _, trace in sorted(ranked.items()) if trace.last.step < top)
    peers = [trace for trace in ranked.values() if trace.last.step == top]
    ends = {trace.last.step for trace in late}
    if len(ends) != 1 or len(peers) < 2 or len(late) * 3 > len(ranked):
        return ()
    reported = [{point.step for point in trace.points} for trace in peers]
    common = {point.step for trace in late for point in trace.points[-SAME_STEPS:]}
    return late if len(common) >= SAME_STEPS and all(common <= steps for steps in reported) else ()


def broke_off_first(traces: Iterable[Trace], scene: Scene) -> dict[int, Line]:
    """The last lines of the few ranks that, behind the same step, wrote only the beginning of their course.

    Only where each rank writes a file of its own, and all peers wrote the same kinds of lines, one of them
    perhaps more: such as a save that began everywhere and that one rank alone never called done.
    """
    ranked = by_rank(traces)
    files = {trace.file for trace in ranked.values()}
    steps = {trace.last.step for trace in ranked.values()}
    if len(files) < len(ranked) or len(ranked) < 3 or len(steps) != 1:
        return {}
    last = {rank: trace.last.line for rank, trace in ranked.items()}
    courses: dict[int, tuple[str, ...]] = {}
    behind: dict[int, list[Line]] = {}
    for rank, trace in ranked.items():
        since = [line for line in scene.lines(trace.file) if line.number > trace.last.line.number]
        behind[rank] = written = [line for line in since if line.text.strip()]
        last[rank] = written[-1] if written else last[rank]
        courses[rank] = tuple(without_digits(line.message)[:200] for line in written[: MOST_BEHIND + 1])
    usual, count = Counter(courses.values()).most_common(1)[0]
    others = {rank: course for rank, course in courses.items() if course != usual}
    # One may tell on and on that it waits: who coordinates a save, which is done when all are. Or it alone
    # writes for a long time how its machine does.
    further = [
        rank
        for rank, course in others.items()
        if course[: len(usual)] == usual
        and (
            all(_WAITS.search(kind) for kind in course[len(usual) :])
            or (len(set(course[len(usual) :])) == 1 and _span(behind[rank][len(usual) :]) >= POLLED_SECONDS)
        )
    ]
    early = sorted(others.keys() - further)
    if len(early) * 3 > len(ranked) or not 0 < len(usual) <= MOST_BEHIND:
        return {}
    if len(further) > 1 or (further and count < 2):
        return {}
    begun = all(courses[rank] == usual[: len(courses[rank])] for rank in early)
    return {rank: last[rank] for rank in early} if begun else {}


def _span(lines: Sequence[Line]) -> float:
    times = [line.time for line in lines if line.time is not None]
    return max(times) - min(times) if times else 0.0


POLLED_SECONDS = 1800.0  # for which lines of one kind alone tell nothing of what their writer does
_WAITS = regex(r"(?i)\b(?:still )?wait(?:s|ing|ed)?\b")
MOST_BEHIND = 40  # lines behind the last step: of a course that goes on for longer not all may have been read


# `timed out waiting for rank 2`, `recv from rank 3 timed out`, `waiting for data from peer rank 1`.
_FOR = regex(
    r"(?i)\b(?:wait(?:ing|ed|s)?|time[d-]? ?-?out|recv|receiv\w+|send(?:ing)?|connect(?:ing)?)\b[^\n]{0,60}?"
    r"\b(?:for|from|on|to)\b(?: [a-z]{1,12}){0,4}? (?:peer )?rank[ =:#]{0,2}(\d{1,7})\b"
)
_GAVE_UP = regex(r"(?i)time[d-]? ?-?out|gave up|giving up|no (?:answer|response|reply)")


def chain(scene: Scene) -> Suspects | None:
    """The end of the chain of ranks that wait for one another; all members of a circle."""
    edges: dict[int, int] = {}
    for reading in scene.readings:
        if reading.source.role not in (SourceRole.WORKER, SourceRole.MERGED):
            continue
        for line in reading.lines:
            if line.rank is None or "rank" not in line.message.lower():
                continue
            text = line.message[:2048]
            if _GAVE_UP.search(text) is not None and (told := _FOR.search(text)) is not None:
                edges.setdefault(line.rank, int(told[1]))
    if len(edges) < 2:
        return None
    ends: Counter[tuple[int, ...]] = Counter()
    for start in edges:
        path = [start]
        while (following := edges.get(path[-1])) is not None and following not in path:
            path.append(following)
        circle = path[path.index(following) :] if following is not None else path[-1:]
        ends[tuple(sorted(circle))] += 1
    (most, count), *_ = ends.most_common(1)
    if count * 2 <= len(edges):
        return None
    if len(most) == 1:
        return Suspects(most, "is the one at the end of the chain of ranks that wait for one another")
    return Suspects(most, "wait for each other in a circle")
