"""Complaints of a machine that join nothing of how the job ended, though no habit tells that they are usual.

What a kernel says without being sure that something died is the cause only where it fits: nobody makes a
step without a machine that stands still, a port that is down or a GPU that is lost; who stood before a CPU
stalled was not stopped by it; a task beside the ranks that waits for a disk is missed by nobody; and who
raises an exception of its own was not stopped by another machine's late interrupt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from logtriage.localize.beside_ranks import (
    befell_another,
    daemon,
    is_beside,
    is_of_controller,
    is_of_no_rank,
    is_told_to_be_killed,
    may_be_beside,
    program_of,
    service,
    stepped_on,
)
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import CONSEQUENCES
from logtriage.localize.habits import OF_RANKS
from logtriage.localize.machine_complaints import (
    AWAKE_SECONDS,
    LIVED_WITH_SECONDS,
    OF_MACHINES,
    RANKS_ARE,
    STALLS,
    STEPS_BY_ALL,
    dated_steps,
    kind_of,
    steps_since,
)
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import Level, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

# Without these no rank of a synchronous job makes a step, or none for long.
NEEDED = (*STALLS, "gpu.", "cuda.", "network.infiniband", "network.interface", "slow.", "host.out_of_memory")


SEVERAL = 2  # where more machines complained of a kind, at times of their own, and were well: it is usual …


NO_MORE_OFTEN = 3.0  # … unless it comes so many times as often at the end


_BLOCKED = regex(
    r"\btask (?P<name>[^\s:]{1,40}(?::[^\s:]{1,10}){0,2}):\d+ blocked for more than (?P<seconds>\d{1,5}) s"
)


# The interfaces that NCCL and Gloo say they use, and adapters whose RDMA devices bear other names than these.
_USED = regex(r"(?:\bUsing |\bOOB |\]|SOCKET_IFNAME[=: ]+)(?P<nic>[a-z][\w.]{1,19})(?::[\d.]|$|,)")


_OF_RDMA = regex(r"\b(?:mlx[45]|bnxt|ice\b|irdma|qed|efa|hfi|ib\d)")


_NUMBERS = regex(r"\d+")
_CALM = (None, Level.DEBUG, Level.INFO)


def without_unjoined(
    candidates: Sequence[Candidate],
    scene: Scene,
    progress: Progress,
    topology: Topology,
    explains: Mapping[str, frozenset[str]],
) -> list[Candidate]:
    """The candidates, with those complaints marked as survived that cannot have ended the job.

    `explains` says which types a type can bring about.
    """
    found = _unjoined(candidates, scene, progress, topology, explains) | _of_foreign_machines(
        candidates, topology
    )
    return [
        replace(each, recovered=True) if (each.line.file, each.line.number) in found else each
        for each in candidates
    ]


_NODE = regex(r"\bnode/(?P<host>[a-z0-9][\w.-]{0,250})")


def _place(candidate: Candidate) -> str | None:
    """The machine that a complaint is about: an event names it as its object."""
    if candidate.host is None and (told := _NODE.search(candidate.line.text[:400])) is not None:
        return told["host"]
    return candidate.host


def _of_foreign_machines(candidates: Sequence[Candidate], topology: Topology) -> set[tuple[str, int]]:
    """The places of what controllers say of machines on which no rank ran, if it is known where all ran."""
    told = [
        each
        for each in candidates
        if is_of_controller(each) and each.failure_type.startswith("host.") and each.host is not None
    ]
    if not told or not 1 < topology.size <= len(topology.host_of_rank):
        return set()
    own = {topology.machine(host) for host in topology.host_of_rank.values()}
    # Where the ranks go by their pods, it is not known of a node that none ran there.
    rows = {_NUMBERS.sub("#", host) for host in own if host is not None}
    return {
        (each.line.file, each.line.number)
        for each in told
        if topology.machine(each.host) not in own
        and (each.source_role is SourceRole.SCHEDULER or _NUMBERS.sub("#", each.host or "") in rows)
    }


def _unjoined(
    candidates: Sequence[Candidate],
    scene: Scene,
    progress: Progress,
    topology: Topology,
    explains: Mapping[str, frozenset[str]],
) -> set[tuple[str, int]]:
    open_ = [each for each in candidates if _may_be_nothing(each)]
    if not any(
        each.source_role in OF_MACHINES or is_of_controller(each) for each in candidates if not each.recovered
    ):
        return set()
    dated = dated_steps(progress)
    passed = [each for each in open_ if each.failure_type.startswith(NEEDED) and stepped_on(each, dated)]
    usual = {kind_of(each) for each in passed if each.strength is Strength.HINT}
    usual |= _had_by_several(passed, open_, dated)
    own = [each for each in candidates if _is_own_cause(each)]
    stopped = _stopped(candidates, scene)
    first = _first_since(open_, stopped)
    done = {id(each) for each in passed}
    programs = frozenset(name for each in passed if (name := program_of(each)) is not None)
    killed = is_told_to_be_killed(candidates)
    lived = [each for each in candidates if each.time is not None and stepped_on(each, dated)]
    units, daemons = set(map(service, lived)) - {None}, set(map(daemon, lived)) - {None}

    def alone(complaint: Candidate) -> list[Candidate]:
        return [mine for mine in own if _stands_alone(mine, complaint, explains)]

    used = _interfaces(scene) if any(each.capture("nic") for each in open_) else frozenset()
    return {
        (each.line.file, each.line.number)
        for each in open_
        if id(each) in done
        or kind_of(each) in usual
        or _waits_beside_the_ranks(each, dated)
        or _is_unused(each, used)
        or befell_another(each, dated)
        or is_of_no_rank(each, programs, topology)
        or _was_there_again(each, scene)
        or (
            each.failure_type.startswith(NEEDED)
            and each.source_role is SourceRole.KERNEL  # others tell how a machine was when somebody asked it
            and stopped is not None
            and first.get((kind_of(each), each.host), 0.0) > stopped + LIVED_WITH_SECONDS
        )
        or (each.failure_type.startswith(NEEDED) and alone(each))
    } | {
        (each.line.file, each.line.number)
        for each in candidates
        if (may_be_beside(each) and is_beside(each, own, alone(each), dated, killed))
        or (unit := service(each)) in units
        or (unit is not None and alone(each))
        or ((by := daemon(each)) in daemons and not _lets_ranks_step(each))
        or (by is not None and not _lets_ranks_step(each) and alone(each))
    }


def _lets_ranks_step(candidate: Candidate) -> bool:
    """Whether a cloud says that the machine is taken away, or it tells of heat, in which ranks step on."""
    is_notice = candidate.failure_type.startswith("scheduler.") and candidate.strength is Strength.DEFINITE
    return is_notice or candidate.failure_type == "gpu.thermal_power"


# What a machine says of a server that it has again, and what names one: `scratch-OST0003`, `10.3.0.9`.
_AGAIN = regex(r"\b(?:OK|restored|re-?connected|recovered|renewed|resumed|Connected|Reinstating)\b")


_NAME = regex(r"[A-Za-z0-9][\w.@-]{0,60}\d[\w.@-]{0,60}")


def _was_there_again(candidate: Candidate, scene: Scene) -> bool:
    """Whether the same machine says later that it has the server again of which it complained."""
    if not candidate.failure_type.startswith(("storage.", "network.connection")):
        return False
    names = set(_NAME.findall(candidate.line.message[:400]))
    return any(
        line.number > candidate.line.number
        and _AGAIN.search(line.message[:400]) is not None
        and not names.isdisjoint(_NAME.findall(line.message[:400]))
        for line in scene.lines(candidate.line.file)
    )


def _interfaces(scene: Scene) -> frozenset[str]:
    """The network interfaces that the ranks say they use."""
    return frozenset(
        used["nic"]
        for reading in scene.readings
        if reading.source.role in OF_RANKS
        for line in reading.lines
        if "Using " in line.text or "IFNAME" in line.text or " OOB " in line.text
        for used in _USED.finditer(line.text[:600])
    )


def _is_unused(candidate: Candidate, used: frozenset[str]) -> bool:
    """Whether a complaint is of an interface that no rank uses, where they say which they use."""
    nic = candidate.capture("nic")
    if nic is None or not used or nic in used:
        return False
    return _OF_RDMA.search(candidate.line.text[:400]) is None


def _may_be_nothing(candidate: Candidate) -> bool:
    of_machine = candidate.source_role in OF_MACHINES and candidate.rule is not None
    if is_of_controller(candidate) and candidate.rule is not None:
        of_machine = candidate.failure_type.startswith(STALLS)
    is_sure = candidate.strength is Strength.DEFINITE
    is_open = not is_sure and not candidate.recovered and not _lets_ranks_step(candidate)
    return of_machine and is_open and candidate.time is not None


def _had_by_several(
    passed: Sequence[Candidate], open_: Sequence[Candidate], dated: Sequence[tuple[float, int]]
) -> set[tuple[str, ...]]:
    """The kinds that most machines had while all stepped on, and that came not much more often later.

    A link that goes down again and again does so on one machine.
    """
    machines = {each.host or each.line.file for each in open_}
    had: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in passed:
        had[kind_of(each)][each.host or each.line.file].append(each.time or 0.0)
    since: dict[tuple[str, ...], list[float]] = defaultdict(list)
    known = {id(each) for each in passed}
    for each in open_:
        if id(each) not in known:
            since[kind_of(each)].append(each.time or 0.0)
    found: set[tuple[str, ...]] = set()
    for kind, times in had.items():
        all_ = sorted(time for each in times.values() for time in each)
        healthy = max(dated[-1][0] - min(dated[0][0], all_[0]), 1.0)
        rest = max(max(since[kind]) - min(since[kind]), 2 * LIVED_WITH_SECONDS) if since[kind] else 0.0
        of_most = len(times) > SEVERAL and len(times) * 2 >= len(machines)
        is_apart = all_[-1] - all_[0] > LIVED_WITH_SECONDS
        usual = max(1.0, len(all_) / healthy * rest)
        if of_most and is_apart and len(since[kind]) <= NO_MORE_OFTEN * usual:
            found.add(kind)
    return found


def _waits_beside_the_ranks(candidate: Candidate, dated: Sequence[tuple[float, int]]) -> bool:
    """Whether a task that is no rank's was blocked for minutes in which all made steps."""
    told = _BLOCKED.search(candidate.line.text[:400])
    if told is None or RANKS_ARE.match(told["name"]) or candidate.time is None:
        return False
    began = candidate.time - float(told["seconds"])
    before, after = steps_since(dated, began + AWAKE_SECONDS), steps_since(dated, candidate.time)
    return before - after >= STEPS_BY_ALL


def _stopped(candidates: Sequence[Candidate], scene: Scene) -> float | None:
    """When the ranks last wrote anything calm, before the first of them had waited in vain."""
    waited = [
        each.time
        for each in candidates
        if each.failure_type == "collective.timeout"
        and each.source_role in OF_RANKS
        and each.time is not None
    ]
    until = min(waited) - LIVED_WITH_SECONDS if waited else None
    times = [
        line.time
        for reading in scene.readings
        if reading.source.role in OF_RANKS
        for line in reading.lines
        if line.time is not None and line.level in _CALM and (until is None or line.time < until)
    ]
    return max(times, default=None)


def _first_since(
    complaints: Sequence[Candidate], stopped: float | None
) -> dict[tuple[tuple[str, ...], str | None], float]:
    """When a machine first complained of each kind, since shortly before all stood."""
    found: dict[tuple[tuple[str, ...], str | None], float] = {}
    for each in complaints:
        if stopped is None or each.time is None or each.time < stopped - LIVED_WITH_SECONDS:
            continue
        key = kind_of(each), each.host
        found[key] = min(found.get(key, each.time), each.time)
    return found


def _is_own_cause(candidate: Candidate) -> bool:
    """Whether a rank states a cause of its own, which no lost peer brings about."""
    states = candidate.role is Role.CAUSE and candidate.strength is not Strength.HINT
    is_own = states and candidate.failure_type not in CONSEQUENCES and candidate.rank is not None
    return is_own and not candidate.recovered and candidate.source_role in OF_RANKS


def _stands_alone(own: Candidate, complaint: Candidate, explains: Mapping[str, frozenset[str]]) -> bool:
    """Whether what a rank states is nothing that the machine's complaint can have brought about.

    A GPU's or an adapter's fault befalls the ranks of its own machine; who stalls may keep others waiting.
    """
    where = _place(complaint)
    if not complaint.failure_type.startswith(STALLS) and (None in (own.host, where) or own.host == where):
        return False
    if own.failure_type == complaint.failure_type:
        return False
    brought_about = explains.get(complaint.failure_type, frozenset())
    return own.failure_type not in brought_about and not any(
        name.endswith(".*") and own.failure_type.startswith(name[:-1]) for name in brought_about
    )
