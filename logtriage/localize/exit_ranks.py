"""Whose end a launcher reports that numbers processes within a node: the global ranks of exits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.exits import Exit
from logtriage.localize.topology import Topology

_SPAWNED_LAST = "exits with return code"  # DeepSpeed's launcher prints the command that it spawned last


def _is_last(each: Exit, topology: Topology) -> bool:
    """Whether no process of a higher local rank than that of an exit is known on its host."""
    of_host = [rank for rank, host in topology.host_of_rank.items() if each.host in (host, None)]
    return (each.local_rank or 0) + 1 >= max(len(of_host), 0 if each.host else len(topology.ranks))


def placed(exits: Sequence[Exit], topology: Topology) -> list[Exit]:
    """The exits with their global ranks: a number that its host belies counts that host's processes.

    `srun: error: gpu-4: task 2: …` speaks of the host's own task where each node's tasks are numbered anew.
    """
    found = []
    for each in exits:
        if each.local_rank is not None and _SPAWNED_LAST in each.line.text and _is_last(each, topology):
            each = replace(each, local_rank=None)
        known = topology.host_of_rank.get(each.rank) if each.rank is not None else None
        if each.rank is None or each.host is None or known is None or known == each.host:
            found.append(each)
        elif each.host in topology.hosts and (rank := topology.global_rank(each.host, each.rank)) is not None:
            found.append(replace(each, rank=rank))
        else:
            found.append(each)
    return found
