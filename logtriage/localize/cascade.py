"""What explains what: from candidates to one root cause and the symptoms that followed from it.

Neither the first nor the last error is the cause as such. A candidate is explained when another one of
a type that can bring it about (rules/explains.yaml, or the rule's own `explains`) was there before it,
allowing for clocks that differ. Of what remains unexplained the surest rule wins, then the type that is
nearer to the machine, then the earlier time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from logtriage.localize.candidates import GENERAL_TYPES, Candidate
from logtriage.model import SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

# Clocks of hosts differ by seconds and messages are flushed late, so an effect may be logged first.
SLACK_SECONDS = 90.0

_SURENESS = {Strength.DEFINITE: 3, Strength.LIKELY: 2, Strength.HINT: 1}

# Nearness to the machine, for ties between equally sure types: what is deeper wins.
_DEPTH: tuple[tuple[str, int], ...] = (
    ("gpu.thermal_power", 60),
    ("gpu.unavailable", 70),
    ("gpu.", 90),
    ("host.node_lost", 85),
    ("host.", 80),
    ("network.infiniband", 75),
    ("storage.", 72),
    ("scheduler.launch", 70),
    ("numerics.", 66),
    ("network.address_in_use", 68),
    ("scheduler.preempted", 66),
    ("scheduler.time_limit", 64),
    ("cuda.", 62),
    ("auth.", 60),
    ("data.loader_worker", 40),
    ("data.", 58),
    ("checkpoint.", 56),
    ("code.compile", 56),
    ("code.import", 55),
    ("code.config", 54),
    ("code.runtime", 38),
    ("code.os_error", 40),
    ("code.subprocess", 20),
    ("code.", 50),
    ("network.connection", 48),
    ("network.rendezvous", 35),
    ("collective.desync", 45),
    ("collective.init", 34),
    ("collective.timeout", 30),
    ("collective.remote_error", 25),
    ("process.native_crash", 28),
    ("scheduler.cancelled", 22),
    ("process.killed", 15),
    ("unknown", 0),
)

# Types that are mostly consequences: even a weak sign of a cause may explain them.
CONSEQUENCES = (
    "collective.timeout", "collective.remote_error", "process.killed", "process.native_crash",
    "network.rendezvous", "scheduler.cancelled", "scheduler.time_limit", "code.subprocess", "unknown",
)  # fmt: skip


def depth(failure_type: str) -> int:
    return next((value for prefix, value in _DEPTH if failure_type.startswith(prefix)), 30)


@dataclass(frozen=True, slots=True)
class Group:
    """All candidates of one failure type; `members` in order of time, as far as it is known."""

    failure_type: str
    members: tuple[Candidate, ...]
    explains: frozenset[str]
    stated: frozenset[str] = frozenset()  # those that its members' own rules name

    @property
    def causes(self) -> tuple[Candidate, ...]:
        return tuple(member for member in self.members if member.role is Role.CAUSE and not member.recovered)

    @property
    def sureness(self) -> int:
        return max((_SURENESS[member.strength] for member in self.causes), default=0)

    @property
    def is_learned(self) -> bool:
        """Whether a rule speaks for it that somebody's confirmed diagnosis taught."""
        return any(
            each.rule is not None and each.rule.provenance is not None and each.strength is Strength.DEFINITE
            for each in self.causes
        )

    @property
    def first_time(self) -> float | None:
        return min((member.time for member in self.members if member.time is not None), default=None)

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(member.host for member in self.members if member.host is not None)

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(member.rank for member in self.members if member.rank is not None)


def group(candidates: Iterable[Candidate], explains: Mapping[str, frozenset[str]]) -> list[Group]:
    by_type: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if not candidate.recovered:
            by_type[candidate.failure_type].append(candidate)
    groups = []
    for failure_type, members in by_type.items():
        members.sort(key=lambda member: (member.time is None, member.time or 0.0))
        own = frozenset(name for member in members if member.rule for name in member.rule.explains)
        edges = explains.get(failure_type, frozenset()) | own
        groups.append(Group(failure_type, tuple(members), edges, own))
    return groups


def may_explain(cause: Group, effect: Group) -> bool:
    """Whether `cause` can have brought about `effect`: by type, by sureness, and by time."""
    if cause is effect or not cause.causes:
        return False
    if _broke_off(cause, effect):
        return True
    if _broke_off(effect, cause):
        return False
    if _never_answered(cause, effect):
        return True
    if _never_answered(effect, cause):
        return False
    if _cleared_away(cause, effect):
        return False
    if cause.failure_type in effect.stated and effect.sureness >= cause.sureness:
        return False  # a rule of the effect's says that it is the other way round
    if effect.failure_type not in cause.explains and not any(
        name.endswith(".*") and effect.failure_type.startswith(name[:-1]) for name in cause.explains
    ):
        return False
    if cause.sureness == 1 and (
        effect.failure_type not in CONSEQUENCES or cause.failure_type in CONSEQUENCES
    ):
        return False  # a weak sign explains what is mostly a consequence, nothing else
    if cause.sureness == 1 and all(each.source_role is SourceRole.KERNEL for each in cause.causes):
        return False  # kernels complain all day
    if cause.failure_type in GENERAL_TYPES and len(cause.ranks & effect.ranks) * 5 > len(cause.ranks) * 3:
        return False  # most ranks that raised it also show the effect: the exception only wraps it
    lost_a_peer = cause.failure_type.startswith("collective.") and effect.failure_type in GENERAL_TYPES
    if lost_a_peer and effect.ranks and cause.ranks and not effect.ranks <= cause.ranks:
        return False  # a lost peer shows as an exception on the ranks that lost it, not on the one that went
    if lost_a_peer and not effect.ranks and effect.hosts and cause.hosts and not effect.hosts <= cause.hosts:
        return False  # nor, where nobody names the rank, on a machine none of whose ranks lost a peer
    began, followed = cause.first_time, effect.first_time
    if began is None or followed is None:
        return True
    return began <= followed + SLACK_SECONDS


# Of these a process does not end by itself: others end it, or it only reports.
_ENDS_NOBODY = ("collective.", "network.", "slow.", "scheduler.", "process.killed", "unknown")


def _broke_off(cause: Group, effect: Group) -> bool:
    """Whether transfers failed because the process at their other end was gone.

    An InfiniBand completion with an error (retries exceeded, flushed) is what a dead peer looks like from the
    ranks that talked to it, unless a port or a link is reported as well.
    """
    if effect.failure_type != "network.infiniband" or effect.sureness == 3 or cause.sureness < 2:
        return False
    if cause.failure_type.startswith(_ENDS_NOBODY) or cause.ranks & effect.ranks:
        return False
    if not cause.ranks and (not cause.hosts or cause.hosts & effect.hosts):
        return False  # of a traceback without a name its machine tells who went
    began, followed = cause.first_time, effect.first_time
    return began is not None and followed is not None and began <= followed + SLACK_SECONDS


# Addresses by which a process asks one of its own machine, and those of whatever is asked.
_HERE = regex(r"(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|::1)(?![\w.-])")
_ASKED = regex(
    r"(?:\bhost='|\b[a-z][a-z0-9+]{2,9}://|\bipv[46]:|\bpeer )\[?([\w:.-]{1,120}?)(?=[]'/,\s\"]|:\d|$)"
)


def _never_answered(cause: Group, effect: Group) -> bool:
    """Whether a service on the asker's own machine was not there because an exception had ended it.

    Of a server that a job starts for itself (rollouts, rewards, a tracker) whoever asks it sees a refused
    connection; why it is not up stands in its own log, or above.
    """
    if effect.failure_type != "network.connection" or cause.failure_type.startswith(_ENDS_NOBODY):
        return False
    texts = [each.line.text[:2000] for each in effect.causes]
    if not any(_HERE.search(text) for text in texts):
        return False
    if any(not _HERE.match(asked) for text in texts for asked in _ASKED.findall(text)):
        return False
    return any(_raised_before(own, effect.causes) for own in cause.causes)


def _raised_before(own: Candidate, asking: Sequence[Candidate]) -> bool:
    """Whether an exception stands above all of `asking`, or in another file before them."""
    if own.record is None:
        return False
    times = [each.time for each in asking if each.time is not None]
    if own.time is not None and times and own.time > min(times):
        return False
    return all(
        each.line.file != own.line.file
        or (each.line.number > own.line.number and each.record is not own.record)
        for each in asking
    )


_WAITED = ("collective.timeout", "network.rendezvous")


def _cleared_away(cause: Group, effect: Group) -> bool:
    """Whether processes were ended only when others had waited for their whole time-out.

    A launcher tells of an end at once: what stands below the time-outs in the same
    file is how it cleared away.
    """
    if cause.failure_type != "process.killed":
        return False
    if _reports_its_end(cause, effect):
        return True
    last: dict[str, int] = {}
    for each in effect.causes:
        last[each.line.file] = max(last.get(each.line.file, 0), each.line.number)
    if effect.failure_type in GENERAL_TYPES and effect.ranks and effect.first_time is not None:
        # Nobody had ended a process when one rank raised an exception: who did so later cleared away.
        is_above = any(each.line.number < last.get(each.line.file, 0) for each in cause.members)
        times = [each.time for each in cause.members if each.time is not None]
        return not is_above and bool(times) and min(times) >= effect.first_time
    if effect.failure_type not in _WAITED:
        return False
    return all(
        each.line.file in last
        and each.line.number > last[each.line.file]
        and not (each.time is not None and effect.first_time is not None and each.time < effect.first_time)
        for each in cause.causes
    )


def _reports_its_end(cause: Group, effect: Group) -> bool:
    """Whether those that somebody else says to have died had raised an exception, or waited in vain.

    Then nobody killed them. Such reports of supervisors often bear no time, so that of the line above them
    tells nothing.
    """
    told = [each for each in cause.causes if each.strength is not Strength.HINT]
    waited = effect.failure_type == "collective.timeout"
    raised = {each.rank: each.line.file for each in effect.causes if waited or each.record is not None}
    return (
        bool(told)
        and (waited or effect.failure_type in GENERAL_TYPES)
        and all(each.rank in raised and each.line.file != raised[each.rank] for each in told)
    )


@dataclass(frozen=True, slots=True)
class Cascade:
    """The root and what follows from it; `rivals` are other unexplained groups, best first."""

    root: Group | None
    rivals: tuple[Group, ...]
    followers: tuple[Group, ...]


def untangle(groups: Sequence[Group]) -> Cascade:
    """The root among all groups."""
    causes = [each for each in groups if each.causes]
    unexplained = [
        each for each in causes if not any(may_explain(other, each) for other in causes if other is not each)
    ]
    if not unexplained:  # a circle: the deepest breaks it
        unexplained = causes
    ranked = sorted(unexplained, key=_precedence)
    root = ranked[0] if ranked else None
    rivals = tuple(ranked[1:])
    followers = tuple(each for each in groups if each is not root and each not in rivals)
    return Cascade(root, rivals, followers)


def _precedence(each: Group) -> tuple[float, ...]:
    general = each.failure_type in GENERAL_TYPES
    first = each.first_time
    return (
        -each.sureness,
        each.failure_type == "unknown",
        -depth(each.failure_type) if not general else -depth(each.failure_type) + 5,
        first if first is not None else float("inf"),
    )
