"""Whom a slowed-down device held up: a machine's state names a device, the job's own times name ranks."""

from __future__ import annotations

from dataclasses import replace

from logtriage.diagnose.decision import Decision
from logtriage.localize.findings import Findings

_SLOWS = "gpu.thermal_power"


def with_slow_ranks(findings: Findings, decision: Decision) -> Decision:
    """The decision with the ranks that are slow, where a machine is blamed whose ranks nothing else tells.

    They all run on one host: the machine that is blamed, or one that the job calls by another name.
    """
    blamed = decision.culprits
    if decision.failure_type != _SLOWS or blamed.ranks:
        return decision
    slow, topology = findings.slowness, findings.topology
    if slow is None or not slow.ranks:
        return decision
    hosts = {topology.machine(host) for host in topology.hosts_of(slow.ranks)}
    known = {topology.machine(host) for host in topology.host_of_rank.values()}
    if len(hosts) > 1 or (hosts and set(blamed.hosts) & known and set(blamed.hosts) != hosts):
        return decision
    where = tuple(host for host in hosts if host is not None) or blamed.hosts
    return replace(decision, culprits=replace(blamed, ranks=slow.ranks, hosts=where))
