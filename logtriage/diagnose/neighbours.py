"""Ranks that met the same as their neighbours on a machine, and said otherwise or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.candidates import GENERAL_TYPES, Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.exits import Exit
from logtriage.localize.topology import Topology
from logtriage.model import SourceRole
from logtriage.rulebank.rule import Role, Strength

# What a rank meets because of the machine that it runs on: its peers there meet it, too.
_OF_A_PLACE = (
    "data.missing", "code.file_not_found", "code.permission", "code.import", "gpu.unavailable",
    "cuda.version_mismatch", "host.disk_full", "storage.filesystem",
)  # fmt: skip

_OF_A_DRIVER = ("gpu.unavailable", "cuda.version_mismatch")


def beside(
    ranks: set[int],
    where: set[str],
    root: Group,
    candidates: Sequence[Candidate],
    exits: Sequence[Exit],
    topology: Topology,
) -> set[int]:
    """Ranks of the same host that said nothing and ended with the same code: not all write such errors.

    Two ranks at least must have shown it there, and none of the others anything else. What a broken driver
    does is told in several ways: who met it in another one is among them, also where the first tells no rank
    but only the host, one of `where`.
    """
    hosts = set(topology.hosts_of(ranks)) if ranks else where
    if root.failure_type in _OF_A_DRIVER and len(hosts) == 1:
        others = [each for each in candidates if each.failure_type in _OF_A_DRIVER and each.host in hosts]
        met = {each.rank for each in others if each.rank is not None and each.strength is Strength.DEFINITE}
        if met:
            return met
    if root.failure_type not in _OF_A_PLACE or len(ranks) < 2 or len(hosts) != 1:
        return set()
    codes = {each.code for each in exits if each.rank in ranks and each.code > 0}
    alike = [each for each in exits if each.code in codes and each.host in hosts]
    there = {each.rank for each in alike if each.rank is not None}
    speak = {each.rank for each in candidates if each.role is Role.CAUSE and each.rule is not None}
    return there - speak if ranks <= there else set()


def raised_below(root: Group, candidates: Sequence[Candidate]) -> set[int]:
    """The one rank that raised what follows from the fault below it, in the same file."""
    first: dict[str, int] = {}
    for each in root.causes:
        first[each.line.file] = min(first.get(each.line.file, each.line.number), each.line.number)
    raised = {
        each.rank
        for each in candidates
        if each.rank is not None
        and each.record is not None
        and each.failure_type in GENERAL_TYPES
        and each.line.number > first.get(each.line.file, each.line.number)
    }
    return raised if len(raised) == 1 else set()


def bereft(root: Group, candidates: Sequence[Candidate]) -> set[int]:
    """Ranks that report the death of a child of theirs which the kernel chose: `DataLoader worker (pid …)`.

    By the process id alone: inside a container the numbers differ, and tell nothing then.
    """
    chosen = {pid for each in root.causes if (pid := each.capture("pid")) is not None}
    return {
        each.rank
        for each in candidates
        if each.rank is not None
        and each.failure_type == "data.loader_worker"
        and each.capture("pid") in chosen
        and each.source_role is not SourceRole.KERNEL
    }
