"""Who is to blame, and when nobody is: all alike is not an odd one out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from logtriage.diagnose.complaints import (
    accused,
    cut_off,
    fails_otherwise,
    far_ends,
    lost_peer,
    never_came,
    unreached,
)
from logtriage.diagnose.launches import launched_on
from logtriage.diagnose.neighbours import beside
from logtriage.diagnose.struck_ranks import VICTIMS_SPEAK, bus, ended_by_themselves, ranks_under
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.exits import Exit
from logtriage.localize.topology import Topology
from logtriage.model import Culprits, SourceRole
from logtriage.rulebank.rule import Role, Strength

# Of these the fault lies with a machine: its host is named even where the job has only one.
OF_A_MACHINE = ("gpu.", "host.", "network.infiniband", "slow.straggler")
# The same error on ranks that met it within this time is one event; a later one can be a victim's.
TOGETHER_SECONDS = 30.0
_RAN_LOW = "The node was low on resource"  # the kubelet, of a pod that it evicts


def blame(
    root: Group, topology: Topology, candidates: Sequence[Candidate], exits: Sequence[Exit] = ()
) -> tuple[Culprits, str]:
    """The ranks, hosts and GPUs where the root cause was seen, and a sentence that says so.

    Empty where all ranks of the job show it alike.
    """
    members = root.causes or root.members
    if root.failure_type == "numerics.nan" and (alone := _own_nan(members)) is not None:
        return alone, f"rank {alone.ranks[0]} alone had it before all others"
    of_root = members
    members = tuple(each for each in members if each.strength is not Strength.HINT) or members
    if root.failure_type == "numerics.divergence" and not any(each.capture("rank") for each in members):
        return Culprits(), ""  # all ranks share the model, whoever is heard first
    if root.failure_type == "hang.silent" and not root.is_learned:  # who watches the job is not who is late
        members = tuple(each for each in members if each.capture("rank") or each.capture("host"))
        if not members:
            return Culprits(), ""
    if root.failure_type in VICTIMS_SPEAK:
        if root.failure_type == "network.rendezvous":
            if (odd := fails_otherwise(members)) is not None:
                told = f"{odd} fails in another way than all others, who wait for it"
                return Culprits(_ranks_of(odd, topology), (odd,)), told
            if (absent := never_came(members)) is not None:
                return Culprits(_ranks_of(absent, topology), (absent,)), f"all others wait for {absent}"
            if (absent_rank := unreached(of_root)) is not None:
                there = tuple(topology.hosts_of([absent_rank])) if len(topology.hosts) > 1 else ()
                return Culprits((absent_rank,), there), f"nobody reaches rank {absent_rank}"
            seen = {each.host for each in candidates if each.host is not None} | {*topology.hosts}
            if (lone := cut_off(members, seen)) is not None:
                told = f"{lone} alone cannot reach where all others met"
                return Culprits(_ranks_of(lone, topology), (lone,)), told
        lost = lost_peer(members)
        told = f"all who complain lost {lost}" if lost else "who complains of it is its victim, not its cause"
        return Culprits(hosts=(lost,) if lost else ()), told
    if root.failure_type.startswith("scheduler."):
        # The node that Slurm's notice names is where it was written; a pod's events name the pod's node.
        told_of = [each.host for each in candidates] + [each.host for each in exits]
        known = {*topology.hosts, *(host for host in told_of if host)}
        if root.failure_type == "scheduler.launch" and (where := launched_on(members, known, exits)):
            ends = [each for each in exits if each.host == where and each.code]
            ended = {each.rank for each in ends if each.rank is not None}
            placed = tuple(sorted(ended)) or _ranks_of(where, topology)
            return Culprits(placed, (where,)), f"the launch failed on {where}"
        pods = {
            each.host
            for each in members
            if each.host and (each.source_role is SourceRole.KUBERNETES or _is_cloud(each))
        }
        if len(pods) > 1:  # a pod and the node under it
            pods = {topology.machine(each) or each for each in pods}
            pods = pods - set(topology.host_of_file.values()) or pods  # of which no list tells the node
        elif root.failure_type == "scheduler.launch" or any(_RAN_LOW in each.line.text for each in members):
            # it is the node that lacked something, or where the pod did not come up
            pods = {topology.machine(each) or each for each in pods}
        if len(pods) != 1:
            return Culprits(), ""
        taken = _taken(members, candidates, {str(each) for each in pods}, topology)
        return Culprits(tuple(sorted(taken)), tuple(sorted(pods))), ""
    machine = root.failure_type.startswith(OF_A_MACHINE)
    if machine:  # what fails there, before the peers that notice
        members = tuple(each for each in members if each.strength is Strength.DEFINITE) or members
    else:
        members = _without_quotes(members)
    kernel = [each for each in members if each.source_role in (SourceRole.KERNEL, SourceRole.HARDWARE)]
    hosts = _hosts(kernel, topology) or _hosts(_monitored(members), topology) or _hosts(members, topology)
    if machine and not hosts:  # the surer lines name no machine, weaker ones do
        hosts = _hosts(root.causes, topology)
    if root.failure_type == "network.infiniband" and hosts:  # others complain of their peer there
        ranks = shown = _first_ranks(each for each in members if each.host in hosts)
    else:
        ranks = shown = _first_ranks(members)
    told = ""
    if machine and (not ranks or kernel):
        below = ranks_under(root, candidates, exits, topology, hosts)
        # Who says it of its own GPU was struck as well, though the kernel names one process alone: if not
        # all say so that run there.
        on_them = {rank for rank, host in topology.host_of_rank.items() if topology.machine(host) in hosts}
        if below and below < shown < on_them and len(shown) * 2 <= topology.size:
            below = shown
        if below and len(below) * 2 <= max(topology.size, 2):
            ranks = below
    if not ranks and root.failure_type == "host.node_lost":
        gone = {
            rank for rank, host in topology.host_of_rank.items() if {host, topology.machine(host)} & hosts
        }
        ranks = gone if len(gone) == 1 and topology.size > 1 else ranks  # its only one
    raised = {id(each.record) for each in members if each.record is not None}
    if not ranks and not machine:
        # Tracebacks without a name: of the processes that ended by themselves, if there are as many.
        closed = any(
            each.role is Role.SYMPTOM and each.failure_type == "process.killed" for each in candidates
        )
        own = ended_by_themselves(_likely_ends(exits, members), topology, others_closed=closed)
        # Where the lines tell the machine, those that ended elsewhere are who noticed it.
        own = {rank for rank in own if topology.machine(topology.host_of_rank.get(rank)) in hosts} or own
        ranks = own if len(raised) <= max(1, len(own)) else set()
        ranks = ranks or _whole_host(len(raised), hosts, topology)
    met = beside(ranks, hosts, root, candidates, exits, topology)
    ranks, shown = ranks | met, shown | met
    size = max(topology.size, len(topology.host_of_rank))
    named = accused(members)
    if named is not None and not machine:
        hosts = set(topology.hosts_of([named])) if len(topology.hosts) > 1 else set()
        return Culprits((named,), tuple(sorted(hosts))), f"all who complain name rank {named}"
    everyone = bool(ranks) and size > 1 and len(ranks) * 2 > size and not (machine and hosts)
    if everyone and len(ranks) < size <= 4 and not _shares_a_program(root):
        everyone = False  # three of four ranks by chance is still telling in a tiny job
    if everyone:
        told = "all ranks show it alike" if len(ranks) == size else "most ranks show it"
        # An error of one device reaches all who use what it shared; the kernel saw whose it was.
        ranks = {each.rank for each in kernel if each.rank is not None}
        if ranks and len(ranks) * 2 <= size:
            told = f"the kernel names the process of rank {', '.join(map(str, sorted(ranks)))}"
        else:
            ranks = set()
    elif ranks:
        told = f"seen on rank {', '.join(map(str, sorted(ranks)))}"
    if not hosts and ranks:
        hosts = set(topology.hosts_of(ranks))
    placed_elsewhere = bool(ranks and topology.host_of_rank) and not ranks & topology.host_of_rank.keys()
    if not hosts and machine and len(topology.hosts) == 1 and not placed_elsewhere:
        hosts = set(topology.hosts)
    if machine and hosts:
        on_them = {rank for rank in ranks if _is_on(rank, hosts, topology)}
        if hosts.isdisjoint(topology.machine(host) for host in topology.host_of_rank.values()):
            on_them = on_them or ranks  # by whatever name the ranks' machines go
        whole = {rank for rank, host in topology.host_of_rank.items() if topology.machine(host) in hosts}
        ranks = on_them if on_them != whole or len(whole) < 4 or shown == whole else set()
    known = set(topology.hosts)
    if root.failure_type != "host.out_of_memory":  # whose limit can be the pod's own
        hosts = {topology.machine(host) or host for host in hosts}
        known = {topology.machine(host) or host for host in known}
    if len(known) > 1 and len(hosts) == len(known):
        hosts = set()
    gpus = {bus(gpu) for each in members if (gpu := each.capture("pci") or each.capture("gpu"))}
    return Culprits(tuple(sorted(ranks)), tuple(sorted(hosts)), tuple(sorted(gpus))[:8]), told


def _monitored(members: Sequence[Candidate]) -> list[Candidate]:
    """What a cluster's record of a node tells of its GPUs, where a rank knows but the name of its pod."""
    return [
        each
        for each in members
        if each.source_role is SourceRole.KUBERNETES
        and each.rule is not None
        and each.rule.id.startswith("nvidia.")
    ]


def _without_quotes(members: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Without what stands below a rank's own words in the same file, on a host where no rank said it:
    a launcher, a driver or a toolkit that repeats the message.
    """
    said = {each.line.file: each for each in reversed(members) if each.rank is not None}
    spoken = {each.host for each in members if each.rank is not None}
    return tuple(
        each
        for each in members
        if each.rank is not None
        or (own := said.get(each.line.file)) is None
        or own.line.number > each.line.number
        or each.host in spoken
    )


def _taken(
    members: Sequence[Candidate], candidates: Sequence[Candidate], hosts: set[str], topology: Topology
) -> set[int]:
    """Ranks that went with a machine that was taken away: its only one, or those that were told to end."""
    ranks = {each.rank for each in members if each.rank is not None and each.host in hosts}
    there = {rank for rank, host in topology.host_of_rank.items() if topology.machine(host) in hosts}
    told = {
        each.rank
        for each in candidates
        if each.rank is not None and each.failure_type == "process.killed" and not each.recovered
    }
    ranks = ranks or (there if len(there) == 1 else told & there or told)
    return ranks if len(ranks) * 2 <= max(topology.size, 2) else set()


def _own_nan(members: Sequence[Candidate]) -> Culprits | None:
    """Whose warning of a NaN of its own came before several ranks, or files, stopped for the sum of all.

    Not rank 0's: it tells what all have. What is more than a warning counts if it alone names a rank.
    """
    dated = [(each.time, each) for each in members if each.time is not None]
    named = {each.rank for _, each in dated if each.rank is not None}
    alone = named if len(named) == 1 else set()
    ends = [
        (time, each) for time, each in dated if each.strength is not Strength.HINT and each.rank not in alone
    ]
    if len({each.line.file if each.rank is None else each.rank for _, each in ends}) < 2:
        return None
    first = min(time for time, _ in ends)
    warned = [each for _, each in dated if each.strength is Strength.HINT or each.rank in alone]
    early = [each for each in warned if each.time is not None and each.time < first]
    if len({each.rank for each in early}) != 1 or not (rank := early[0].rank):
        return None
    return Culprits((rank,), (early[0].host,) if early[0].host else ())


def _likely_ends(exits: Sequence[Exit], members: Sequence[Candidate]) -> list[Exit]:
    """The ends that can be those of who wrote the members: told in the same files, and after a traceback
    with a status instead of a signal.
    """
    files = {each.line.file for each in members}
    near = [each for each in exits if each.line.file in files]
    ends = near if any(each.rank is not None and each.code not in (0, -15) for each in near) else list(exits)
    if all(each.record is not None for each in members):
        return [each for each in ends if each.code > 0 or each.code == -15] or ends
    return ends


def _whole_host(count: int, hosts: set[str], topology: Topology) -> set[int]:
    """All ranks of the one host on which as many tracebacks were written as it has ranks."""
    if len(hosts) != 1 or len(topology.hosts) < 2:
        return set()
    there = {rank for rank, host in topology.host_of_rank.items() if host in hosts}
    return there if len(there) == count else set()


def _ranks_of(host: str, topology: Topology) -> tuple[int, ...]:
    """All ranks of a host, unless they are most of the job's."""
    there = sorted(rank for rank, where in topology.host_of_rank.items() if where == host)
    return tuple(there) if len(there) * 2 <= topology.size else ()


def _is_on(rank: int, hosts: set[str], topology: Topology) -> bool:
    """Whether a rank runs on one of the hosts, or where it runs is not known."""
    host = topology.machine(topology.host_of_rank.get(rank))
    return host is None or host in hosts


def _is_cloud(candidate: Candidate) -> bool:
    return candidate.rule is not None and candidate.rule.id.startswith("cloud.")


def _shares_a_program(root: Group) -> bool:
    """Types that every rank runs into alike, because all run the same program on the same settings."""
    return root.failure_type.startswith(("code.", "checkpoint.", "data.", "auth.", "cuda.", "collective."))


def _first_ranks(members: Iterable[Candidate]) -> set[int]:
    """The ranks that met it first: where times are known, within TOGETHER_SECONDS of the first."""
    ranked = [each for each in members if each.rank is not None]
    times = [each.time for each in ranked if each.time is not None]
    if not times:
        return {each.rank for each in ranked if each.rank is not None}
    first = min(times)
    return {
        each.rank
        for each in ranked
        if each.rank is not None and (each.time is None or each.time <= first + TOGETHER_SECONDS)
    }


def _hosts(members: Sequence[Candidate], topology: Topology) -> set[str]:
    """The writers' hosts; where most writers point at one peer, that peer (Aegis, NSDI'25: RootDiag)."""
    times = [each.time for each in members if each.time is not None and each.host is not None]
    first = min(times, default=None)
    hosts = {
        each.host
        for each in members
        if each.host is not None
        and (first is None or each.time is None or each.time <= first + TOGETHER_SECONDS)
    }
    known = {*topology.hosts, *hosts}
    peers = Counter(far_ends(members).values())
    for each in members:
        name = (each.capture("peer") or "").split("<")[0].rsplit(":", 1)[0]
        if host := topology.host_of_address.get(name, name if name in known else ""):
            peers[host] += 1
    if peers and len(hosts) > 1:
        (top, votes), *_ = peers.most_common(1)
        others = {each.host for each in members if each.host not in (None, top)}
        if votes * 2 > sum(peers.values()) and others:
            return {top}
    return hosts
