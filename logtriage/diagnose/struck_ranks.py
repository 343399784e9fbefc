"""The ranks that a machine's fault struck, by process or GPU, and those that ended by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logtriage.diagnose.neighbours import bereft, raised_below
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.exits import Exit
from logtriage.localize.topology import Topology
from logtriage.model import SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

# Types that only victims report: who writes the line is never where it began.
VICTIMS_SPEAK = ("collective.timeout", "collective.remote_error", "network.rendezvous")
# What a rank shows when its GPU or its host failed under it.
_UNDER_A_MACHINE = ("cuda.", "process.native_crash", "process.killed")
_OF_STATES = (SourceRole.HARDWARE, SourceRole.METRICS)
_PCI = regex(r"^(?:0000)?([0-9A-Fa-f]{4}:)?([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})")


def ranks_under(
    root: Group,
    candidates: Sequence[Candidate],
    exits: Sequence[Exit],
    topology: Topology,
    hosts: set[str],
) -> set[int]:
    """Ranks that a machine's fault struck: by process id or GPU, or by what they showed on that host."""
    for told in (root.causes, candidates):  # what the kernel says of others can be how they were taken down
        if by_pid := _ranks_of_pids(told, topology, hosts):
            return by_pid
    if root.failure_type == "host.out_of_memory" and (parents := bereft(root, candidates)):
        return parents
    if by_gpu := _ranks_of_gpus(root.causes, topology):
        return by_gpu
    peers_speak = root.failure_type == "network.infiniband" and hosts
    ranked = [each for each in root.causes if each.rank is not None]
    own = [each for each in ranked if each.strength is Strength.DEFINITE] if peers_speak else []
    direct = {
        each.rank
        for each in own or ranked
        if each.rank is not None and (not peers_speak or each.host in hosts)
    }
    if direct:
        return direct
    # Ranks whose machines go by other names (pods of which no list tells the node) may all run there.
    unplaced = hosts.isdisjoint(topology.machine(host) for host in topology.host_of_rank.values())
    # A watchdog aborts the rank that waited: its end says nothing of the machine under it.
    waited = {each.rank for each in candidates if each.failure_type in VICTIMS_SPEAK}
    struck = {
        each.rank
        for each in candidates
        if each.rank is not None
        and each.role is Role.CAUSE
        and (each.failure_type.startswith(_UNDER_A_MACHINE) or "unhandled cuda error" in each.line.message)
        and (each.failure_type.startswith("cuda.") or each.rank not in waited)
        and (unplaced or topology.machine(topology.host_of_rank.get(each.rank, each.host)) in (*hosts, None))
    }
    # On one machine the rank that never gave up on its peers is the one whose GPU stopped answering, unless a
    # launcher reports ends: they can be of a rank that said nothing.
    quiet = set(range(topology.size)) - waited if waited and not exits and len(topology.hosts) < 2 else set()
    if not struck and 0 < len(quiet) * 3 <= topology.size:
        return quiet
    there = {rank for rank, host in topology.host_of_rank.items() if topology.machine(host) in hosts}
    if not struck and there & waited and len(there - waited) == 1:
        return there - waited  # all others on that machine waited for it
    ended = ended_by_themselves(exits, topology) - waited
    some = ended < {each.rank for each in exits if each.rank is not None}
    return ended if ended and some else struck or ended or raised_below(root, candidates)


def _ranks_of_pids(told: Iterable[Candidate], topology: Topology, hosts: set[str]) -> set[int]:
    found: set[int] = set()
    for each in told:
        pid = each.capture("pid")
        if each.source_role is not SourceRole.KERNEL or (hosts and each.host not in hosts):
            continue
        if pid and pid.isdigit():
            for place in (each.host, None):
                if (place, int(pid)) in topology.rank_of_pid:
                    found.add(topology.rank_of_pid[place, int(pid)])
    return found


def _ranks_of_gpus(told: Iterable[Candidate], topology: Topology) -> set[int]:
    """By the PCI address that a kernel names and NCCL prints of the rank that uses it.

    Else by the number that a report of a machine's state gives a GPU, which is mostly the local rank's.
    """
    ranks = {(topology.machine(host), bus): rank for (host, bus), rank in topology.rank_of_gpu.items()}
    found = set()
    for each in told:
        if (pci := _PCI.match(each.capture("pci") or "")) and (each.host, pci[2].lower()) in ranks:
            found.add(ranks[each.host, pci[2].lower()])
        elif pci is None and each.source_role in _OF_STATES and (gpu := each.capture("gpu")):
            local = int(gpu) if gpu.isdigit() else None
            rank = topology.global_rank(each.host, local) if each.host and local is not None else None
            found |= set() if rank is None else {rank}
    return found


def ended_by_themselves(
    exits: Sequence[Exit], topology: Topology, *, others_closed: bool = False
) -> set[int]:
    """Ranks that ended on their own while the launcher had to end others (SIGTERM, SIGKILL after it)."""
    own: set[int] = set()
    closed: set[int] = set()
    for each in exits:
        rank = each.rank
        if rank is None and each.local_rank is not None:
            rank = topology.global_rank(each.host, each.local_rank)
        if rank is None or each.code == 0:
            continue
        (closed if each.code == -15 else own).add(rank)
    killed = {each.rank for each in exits if each.code == -9 and each.rank is not None}
    if own - killed:  # a kill beside an exit of its own is how the rest was taken down
        closed |= own & killed
        own -= killed
    known = max(topology.size, len(topology.ranks | own | closed), 2 if others_closed else 0)
    claimed = {each.rank for each in exits if each.claimed_root and each.rank is not None}
    alone = bool(closed) or others_closed or len(own) < known or own == claimed
    if own and alone and len(own) * 2 <= max(known, 2):
        return own
    return set()


def bus(gpu: str) -> str:
    """A GPU's PCI address in one form, where it is told by one."""
    return gpu.rstrip(":").lower() if _PCI.match(gpu) else gpu
