"""What a machine's own log complains of and the job lived with: slow servers, crashes of other programs.

Kernels complain all day. What came before without harm explains no end; the run itself is the history that
it is held against, and earlier good runs are as well.
"""

from __future__ import annotations

import bisect
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from logtriage.localize.candidates import Candidate
from logtriage.localize.habits import HABIT, OF_RANKS, Kinds
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import key_of
from logtriage.model import Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits
from logtriage.rulebank.rule import Strength

OUTLIVED_SECONDS = 300.0
LIVED_WITH_SECONDS = 60.0  # or so long after a machine's complaint …
LIVED_WITH_STEPS = 20  # … so many steps
STEPS_BY_ALL = 3  # which nobody makes without the machine that stalled
AWAKE_SECONDS = 15.0  # who writes so long after a crash has not crashed; clocks of one machine agree better
NO_MORE_OFTEN = 3.0  # times as often as while the job went on: more would be an outage

OF_MACHINES = (SourceRole.KERNEL, SourceRole.HARDWARE)
# What comes and goes without a trace: connections to servers. A process that crashed is one of the job's only
# where the job stops: of a synchronous one no rank can be missing.
_PASSES = ("storage.", "network.connection")
# A machine that stalls for a while, or comes near a limit, may go on; who is lost makes no step any more.
STALLS = ("host.node_lost", "host.resource_limit")
# So it is with whom the kernel killed for its memory, and whose access to a GPU it stopped.
_CRASH = ("process.", "host.out_of_memory", "cuda.")
RANKS_ARE = regex(r"(?i)^(?:python|pt_|ray|torchrun|pytest|ipython|conda)|^<")  # what ranks are called, too


def lived_with(
    candidates: Sequence[Candidate],
    scene: Scene,
    progress: Progress,
    topology: Topology,
    kinds: Kinds,
    done: Line | None = None,
) -> set[tuple[str, int]]:
    """The places (file, number) of machines' complaints that mean nothing for the job's end.

    Those after which the job made steps for long, or was `done`; of a kind of which it lived with many, the
    few others too; what good runs had; and crashes after which all ranks of that machine wrote on.
    """
    complaints = [each for each in candidates if each.source_role in OF_MACHINES and each.rule is not None]
    if not complaints:
        return set()
    dated = dated_steps(progress)
    last = progress.last_time
    weak = [each for each in complaints if each.strength is Strength.HINT]
    passing = [each for each in complaints if each.strength is not Strength.HINT and _may_pass(each)]
    usual = {kind_of(each) for each in weak if _was_outlived(each, dated, last)}
    habits = _habits(passing, dated, last)
    beside = _crashes_of_others(passing, candidates, scene, topology, last)
    programs = _lived_without(passing, dated, last)
    return {
        (each.line.file, each.line.number)
        for each in (*weak, *passing)
        if kind_of(each) in usual | habits
        or id(each) in beside
        or (each in passing and _program(each) in programs)
        or (each in passing and _was_outlived(each, dated, last))
        or _came_before(each, done)
        or (kinds.of_good_runs and key_of(each.line.text) in kinds.of_good_runs)
    }


def _came_before(candidate: Candidate, done: Line | None) -> bool:
    if done is None or done.time is None or candidate.time is None:
        return False
    return candidate.time < done.time


def _habits(
    passing: Sequence[Candidate], dated: Sequence[tuple[float, int]], last: float | None
) -> set[tuple[str, ...]]:
    """The kinds that came at least HABIT times while the job went on, and later not much more often."""
    times = [each.time for each in passing if each.time is not None]
    if not dated or not times:
        return set()
    lived = [each for each in passing if _was_outlived(each, dated, last)]
    until = _lived_until(dated, last)
    healthy, rest = until - min(dated[0][0], *times, until), max(times) - until
    before = Counter(map(kind_of, lived))
    after = Counter(kind_of(each) for each in passing) - before
    return {
        kind
        for kind, count in before.items()
        if count >= HABIT and after[kind] * healthy <= NO_MORE_OFTEN * count * max(rest, LIVED_WITH_SECONDS)
    }


# What a rank says of files, where a machine's complaint of a server is more than its own affair.
_OF_FILES = ("storage.", "code.os_error", "host.disk_full", "data.missing", "network.connection")


def unfelt(candidates: Sequence[Candidate], progress: Progress) -> set[tuple[str, int]]:
    """The places of machines' complaints of servers that no rank felt and that came no more often at the end.

    A run of minutes knows a kind once or twice before: too few for a habit. But several machines had it, at
    times of their own, one of them long before the end, and no rank says a word of its files.
    """
    dated, last = dated_steps(progress), progress.last_time
    passing = [
        each
        for each in candidates
        if each.source_role in OF_MACHINES
        and each.rule is not None
        and each.failure_type.startswith((*_PASSES, *STALLS))
    ]
    open_ = [each for each in passing if not each.recovered and each.strength is not Strength.DEFINITE]
    if any(map(_tells_of_files, candidates)):
        open_ = [each for each in open_ if not each.failure_type.startswith(_PASSES)]
    if not open_ or not dated or last is None:
        return set()
    found: set[tuple[str, int]] = set()
    for kind in {kind_of(each) for each in open_}:
        times = [
            (each.time, each.host or each.line.file)
            for each in passing
            if kind_of(each) == kind and each.time is not None
        ]
        lived = [each.time for each in passing if kind_of(each) == kind and _was_outlived(each, dated, last)]
        near = [each for each, _ in times if last - LIVED_WITH_SECONDS <= each <= last + LIVED_WITH_SECONDS]
        span = max(last - LIVED_WITH_SECONDS - dated[0][0], LIVED_WITH_SECONDS)
        before = sum(each < last - LIVED_WITH_SECONDS for each, _ in times)
        usual = before / span * 2 * LIVED_WITH_SECONDS
        if lived and len({host for _, host in times}) > 1 and len(near) <= NO_MORE_OFTEN * max(1.0, usual):
            found |= {(each.line.file, each.line.number) for each in open_ if kind_of(each) == kind}
    return found


def _tells_of_files(candidate: Candidate) -> bool:
    of_rank = candidate.source_role in OF_RANKS and not candidate.recovered
    return of_rank and candidate.failure_type.startswith(_OF_FILES)


def _lived_until(dated: Sequence[tuple[float, int]], last: float | None) -> float:
    """When the time began of which nobody can tell whether the job went on for long after."""
    long_before = bisect.bisect_right(dated, dated[-1][1] - LIVED_WITH_STEPS, key=lambda each: each[1])
    by_steps = dated[long_before - 1][0] - LIVED_WITH_SECONDS if long_before else dated[0][0]
    return max(by_steps, (last or by_steps) - OUTLIVED_SECONDS)


def _crashes_of_others(
    passing: Sequence[Candidate],
    candidates: Sequence[Candidate],
    scene: Scene,
    topology: Topology,
    last_step: float | None,
) -> set[int]:
    """The crashes (by id) that struck no rank: all there spoke later, or nobody noticed, and none names it.

    A watchdog's word bears no time in older releases; whoever has waited in vain was there to the end.
    """
    crashes = [each for each in passing if each.failure_type.startswith(_CRASH) and each.time is not None]
    if not crashes:
        return set()
    there: dict[str | None, set[int]] = defaultdict(set)
    for rank, host in topology.host_of_rank.items():
        there[topology.machine(host)].add(rank)
    last: dict[int, float] = {}
    for reading in scene.readings:
        if reading.source.role in OF_RANKS:
            for line in reading.lines:
                writer = topology.rank(line) if line.time is not None else None
                if writer is not None and line.time is not None:
                    last[writer] = max(last.get(writer, line.time), line.time)
    waited = {each.rank for each in candidates if each.failure_type == "collective.timeout"}
    complained = max(
        (each.time for each in candidates if each.source_role not in OF_MACHINES and each.time is not None),
        default=0.0,
    )
    stepped = last_step if last_step is not None else math.inf
    looked_on = max((line.time or 0.0 for line in _ends(scene)), default=0.0)
    told = [each.line.text for each in candidates if each.source_role not in OF_MACHINES]

    @cache
    def is_told(by_memory: bool) -> bool:
        return (_is_told_to_be_killed if by_memory else _is_told_to_have_crashed)(candidates)

    return {
        id(each)
        for each in crashes
        if (
            _all_spoke(there.get(topology.machine(each.host), set()), each.time or 0.0, waited, last)
            # Launchers and peers notice at once that a rank is gone. Nobody did, for as long as they looked
            # on, or the job had stood still for long.
            or _ended_otherwise(each, candidates, topology)
            or _came_elsewhere(each, crashes, is_told)
            or complained <= (each.time or 0.0) < looked_on - OUTLIVED_SECONDS
            or max(complained, stepped + OUTLIVED_SECONDS) <= (each.time or 0.0)
        )
        and not _is_named(each.capture("pid"), told)
        and not (each.failure_type == "host.out_of_memory" and _may_be_missed(each, candidates))
    }


def _is_named(process: str | None, texts: Iterable[str]) -> bool:
    """Whether one of the texts holds a process's number."""
    return process is not None and any(
        process in text and re.search(rf"\b{re.escape(process)}\b", text) for text in texts
    )


_CLOCK = regex(r"\d:\d\d")


def _may_be_missed(killed: Candidate, candidates: Sequence[Candidate]) -> bool:
    """Whether the job says, undated, that a process was killed, and one was that is called as ranks are."""
    return RANKS_ARE.match(killed.capture("name") or "") is not None and any(
        each.failure_type == "process.killed" and _CLOCK.search(each.line.text[:120]) is None
        for each in candidates
        if each.source_role in OF_RANKS and not each.recovered
    )


def _all_spoke(ranks: set[int], crash: float, waited: set[int | None], last: Mapping[int, float]) -> bool:
    """Whether all ranks of a machine, which are known, were there after a crash."""
    return bool(ranks) and all(
        rank in waited or last.get(rank, 0.0) > crash + AWAKE_SECONDS for rank in ranks
    )


_BY_CRASH = frozenset(("-4", "-7", "-8", "-11", "132", "135", "136", "139"))
_TOLD_CRASH = regex(
    r"(?i)\bsig(?:segv|bus|ill|fpe)\b|segmentation fault|\bsegfault\b|\bbus error\b|\bsignal 11\b"
)


def doubted(candidates: Sequence[Candidate]) -> set[tuple[str, int]]:
    """The places of machines' words on crashes of which the job knows nothing, but how its ranks ended."""
    told = [each for each in candidates if each.source_role not in OF_MACHINES]
    codes = {code for each in told if (code := each.capture("exitcode")) is not None}
    if not codes or codes & _BY_CRASH or any(_TOLD_CRASH.search(each.line.text[:1000]) for each in told):
        return set()
    return {
        (each.line.file, each.line.number)
        for each in candidates
        if each.source_role in OF_MACHINES and each.failure_type.startswith("process.") and not each.recovered
    }


_BY_SEGFAULT = ("-11", "11", "139")


def _ended_otherwise(crash: Candidate, candidates: Sequence[Candidate], topology: Topology) -> bool:
    """Whether the launcher of that machine reported its first end long after, and no crash of this kind."""
    if not crash.failure_type.startswith("process."):
        return False
    machine = topology.machine(crash.host)
    ends = [
        (each.capture("exitcode"), each.time)
        for each in candidates
        if each.source_role not in OF_MACHINES and topology.machine(each.host) == machine is not None
    ]
    told = [(code, time) for code, time in ends if code is not None and time is not None]
    return bool(told) and all(
        code not in _BY_SEGFAULT and time > (crash.time or 0.0) + LIVED_WITH_SECONDS for code, time in told
    )


def _program(candidate: Candidate) -> str | None:
    """The program that a machine tells of, where ranks are not called so as a rule."""
    name = candidate.capture("name") if candidate.failure_type.startswith(_CRASH) else None
    return None if name is None or RANKS_ARE.match(name) else name


def _lived_without(
    passing: Sequence[Candidate], dated: Sequence[tuple[float, int]], last: float | None
) -> frozenset[str | None]:
    """The programs of which the job lost one and went on for long: none of its ranks is called like them."""
    return frozenset(_program(each) for each in passing if _was_outlived(each, dated, last)) - {None}


def _came_elsewhere(
    crash: Candidate, crashes: Sequence[Candidate], is_told: Callable[[bool], bool]
) -> bool:
    """Whether the same program crashed on another machine as well, minutes apart: a job ends by one of them.

    Not where somebody says how a rank crashed: `is_told`, by the kernel for its memory or by itself.
    """
    apart = (
        each
        for each in crashes
        if each.host != crash.host
        and kind_of(each) == kind_of(crash)
        and abs((each.time or 0.0) - (crash.time or 0.0)) > OUTLIVED_SECONDS
    )
    if next(apart, None) is None:
        return False
    return not is_told(crash.failure_type == "host.out_of_memory")


BY_KILL = frozenset(("-9", "9", "137"))


def _is_told_to_be_killed(candidates: Sequence[Candidate]) -> bool:
    return any(
        each.capture("exitcode") in BY_KILL for each in candidates if each.source_role not in OF_MACHINES
    )


def _is_told_to_have_crashed(candidates: Sequence[Candidate]) -> bool:
    told = [each for each in candidates if each.source_role not in OF_MACHINES]
    codes = {each.capture("exitcode") for each in told}
    return bool(codes & _BY_CRASH) or any(_TOLD_CRASH.search(each.line.text[:1000]) for each in told)


def _ends(scene: Scene) -> Iterator[Line]:
    """The last dated line of each log that the job's launchers or the whole of it wrote."""
    for reading in scene.readings:
        if reading.source.role in (SourceRole.LAUNCHER, SourceRole.MERGED):
            yield from [line for line in reading.lines[-50:] if line.time is not None][-1:]


def _may_pass(candidate: Candidate) -> bool:
    if candidate.failure_type.startswith((*_PASSES, *STALLS)):
        return candidate.strength is not Strength.DEFINITE
    return candidate.failure_type.startswith(_CRASH) and candidate.capture("name") is not None


def kind_of(candidate: Candidate) -> tuple[str, ...]:
    """The rule, and of a crash the program and the library in which it was: those of others are no habit."""
    rule = candidate.rule.id if candidate.rule is not None else ""
    if not candidate.failure_type.startswith(_CRASH):
        return (rule,)
    named = (candidate.capture(name) or "" for name in ("name", "module"))
    if candidate.failure_type == "host.out_of_memory":
        rule = candidate.failure_type  # several lines tell of one kill
    return (rule, *map(without_digits, named))


def _was_outlived(candidate: Candidate, dated: Sequence[tuple[float, int]], last: float | None) -> bool:
    if candidate.time is None or last is None:
        return False
    steps = steps_since(dated, candidate.time + LIVED_WITH_SECONDS)
    of_machine = candidate.failure_type.startswith(STALLS)
    return last > candidate.time + OUTLIVED_SECONDS or steps >= (
        STEPS_BY_ALL if of_machine else LIVED_WITH_STEPS
    )


def dated_steps(progress: Progress, behind: Line | None = None) -> list[tuple[float, int]]:
    """Times and numbers of steps, in order; of the file of `behind` those alone that follow that line."""
    points = [point for trace in progress.with_one_count().traces for point in trace.points]
    return sorted(
        (point.line.time, point.step)
        for point in points
        if point.line.time is not None
        and (behind is None or point.line.file != behind.file or point.line.number > behind.number)
    )


def steps_since(dated: Sequence[tuple[float, int]], time: float) -> int:
    """By how many steps the job went on after a time; `dated` are times and steps in order."""
    at = bisect.bisect_right(dated, (time, 1 << 62))
    return dated[-1][1] - dated[max(at - 1, 0)][1] if at < len(dated) else 0
