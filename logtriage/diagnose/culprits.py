"""Who is to blame, and when nobody is: all alike is not an odd one out."""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.topology import Topology
from logtriage.model import Culprits


def blame(root: Group, topology: Topology, candidates: Sequence[Candidate]) -> tuple[Culprits, str]:
    """The ranks, hosts and GPUs where the root cause was seen, and a sentence that says so.

    Empty where all ranks of the job show it alike.
    """
    members = root.causes or root.members
    ranks = {each.rank for each in members if each.rank is not None}
    hosts = {each.host for each in members if each.host is not None}
    gpus = {gpu for each in members if (gpu := each.capture("gpu") or each.capture("pci"))}
    known = topology.ranks
    if ranks and known and (len(ranks) == len(known) > 1 or len(ranks) * 2 > max(len(known), 2)):
        ranks_named: set[int] = set()
        told = "all ranks show it alike" if len(ranks) == len(known) else "most ranks show it"
    else:
        ranks_named = ranks
        told = f"seen on rank {', '.join(map(str, sorted(ranks)))}" if ranks else ""
    if not hosts and ranks_named:
        hosts = set(topology.hosts_of(ranks_named))
    if len(hosts) > 1 and len(hosts) * 2 > len(topology.hosts):
        hosts = set()
    return Culprits(tuple(sorted(ranks_named)), tuple(sorted(hosts)), tuple(sorted(gpus))), told
