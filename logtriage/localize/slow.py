"""Slow without an error: one rank that all others wait for, or an input pipeline that cannot keep up.

What proves a straggler is the contrast between ranks (`stragglers`). What proves a starved input pipeline is
the contrast within a step: waiting for data against everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logtriage.localize.awaited import awaited
from logtriage.localize.busy_disks import busy_disk, slow_stretches
from logtriage.localize.busy_hosts import busy_host
from logtriage.localize.durations import Duration, durations
from logtriage.localize.extremes import slowest_of_reports
from logtriage.localize.filling import refilled
from logtriage.localize.lone_transport import lone_transport
from logtriage.localize.pieces import pieces
from logtriage.localize.progress import Progress, Trace
from logtriage.localize.rates import rates
from logtriage.localize.scene import Scene
from logtriage.localize.starved import starved
from logtriage.localize.step_parts import Parts, straggling
from logtriage.localize.stragglers import FEW_SLOWER, Alike, Straggling, compare
from logtriage.localize.topology import Topology
from logtriage.model import Line


@dataclass(frozen=True, slots=True)
class Slowness:
    """`failure_type` is slow.straggler or slow.data; `lines` show it, the first most plainly.

    `factor` is how much longer the slow ranks take than their peers, or the share of a step spent on data.
    """

    failure_type: str
    ranks: tuple[int, ...]
    lines: tuple[Line, ...]
    factor: float
    summary: str
    since: Line | None = None  # the line from which on it was slow
    straggling: Straggling | None = None  # by which comparison
    hosts: tuple[str, ...] = ()  # where times are told of hosts, not of ranks
    parts: Parts | None = None  # of steps, that no name tells, and that were compared


def _starving(traces: Sequence[Trace], scene: Scene) -> Slowness | None:
    found = starved(traces, scene)
    return None if found is None else Slowness("slow.data", (), found.lines, found.share, found.told)


def _refilled(traces: Sequence[Trace], scene: Scene) -> Slowness | None:
    """A job whose input is read anew before each stretch of its steps."""
    found = refilled(traces, scene)
    if found is None:
        return None
    told = f"for {found.share:.0%} of the time no step is made while the input is read, again and again"
    return Slowness("slow.data", (), found.lines, found.share, told)


def _held_by_disk(traces: Sequence[Trace], scene: Scene) -> Slowness | None:
    """A job with stretches of slow steps, beside whose log a disk is shown that cannot keep up."""
    disk = busy_disk(scene)
    if disk is None or not (slow := slow_stretches(traces)):
        return None
    return Slowness("slow.data", (), (disk.row, *slow[:2]), disk.waiting / 100, disk.told)


def _held_by_host(traces: Sequence[Trace], scene: Scene, topology: Topology) -> Slowness | None:
    """A job with stretches of slow steps, one of whose machines has far more to do than all others."""
    busy = busy_host(scene, topology)
    if busy is None or not (slow := slow_stretches(traces)):
        return None
    told = f"the load of {busy.host} is {busy.factor:.0f} times that of the other machines"
    return Slowness("slow.straggler", (), (busy.line, *slow[:2]), busy.factor, told, hosts=(busy.host,))


LEAST_BESIDE = 3  # of fewer slow ranks of a machine nothing follows for the others


LEAST_HOSTS = 8  # of fewer machines none is odd
LEAST_OF_HOST = 3  # values of all its ranks together


def _whole_machines(measured: Sequence[Duration], topology: Topology) -> Straggling | None:
    """The ranks of machines on which all take longer, where too little was read of each rank by itself.

    Of a very large job a window of a file holds one line of a rank, but lines of all ranks of its machine.
    """
    numbers: dict[str, int] = {}
    of_hosts = [
        replace(each, rank=numbers.setdefault(host, len(numbers)))
        for each in measured
        if (host := topology.host_of_rank.get(each.rank)) is not None
    ]
    found = compare(of_hosts, LEAST_OF_HOST) if len(numbers) >= LEAST_HOSTS else None
    if not isinstance(found, Straggling):
        return None
    hosts = {host for host, number in numbers.items() if number in found.ranks}
    ranks = tuple(sorted(rank for rank, host in topology.host_of_rank.items() if host in hosts))
    first = {
        each.rank: each.line for each in reversed(measured) if each.kind == found.kind and each.rank in ranks
    }
    return replace(found, ranks=ranks, first=tuple(sorted(first.items())))


def _with_rest_of_machine(slow: Straggling, told: Sequence[Duration], topology: Topology) -> Straggling:
    """With all ranks of a machine most of which are slow, unless one told of a usual time since."""
    last = {each.rank: each for each in told if each.kind == slow.kind}
    ranks = set(slow.ranks)
    for host in topology.hosts_of(slow.ranks):
        there = {rank for rank, where in topology.host_of_rank.items() if where == host}
        others = there - ranks
        is_most = len(there) > LEAST_BESIDE and len(others) * 2 < len(there)
        if is_most and all(_may_be_slow(last.get(rank), slow) for rank in others):
            ranks |= others
    return replace(slow, ranks=tuple(sorted(ranks)))


def _may_be_slow(last: Duration | None, slow: Straggling) -> bool:
    """Whether a rank told nothing, or last of a slow time, or only before any was slow."""
    if last is None or last.seconds > slow.bar:
        return True
    since = slow.since.time if slow.since is not None else None
    return since is not None and last.line.time is not None and last.line.time < since


def slowness(progress: Progress, scene: Scene, topology: Topology) -> Slowness | None:
    """What made the job slow, where the times that its lines tell show it."""
    measured = list(durations(scene, topology))
    found = compare(measured)
    if isinstance(found, Straggling):
        return of_ranks(_with_rest_of_machine(found, measured, topology), topology)
    if found is None and (slow := _slow_hosts(scene, topology)) is not None:
        return slow
    if isinstance(found, Alike) and found.ranks * 2 < topology.size:
        whole = _whole_machines(measured, topology)
        if whole is not None:
            return of_ranks(whole, topology)
    if found is None and (last := slowest_of_reports(scene, topology)) is not None:
        who = last.host or f"rank {last.rank}"
        told = f"{who} is the slowest in each report: {last.factor:.1f} times as slow as the fastest"
        ranks, there = (() if last.rank is None else (last.rank,)), tuple(filter(None, (last.host,)))
        since = last.lines[0]
        return Slowness("slow.straggler", ranks, last.lines[:3], last.factor, told, since, hosts=there)
    if (last_come := awaited(measured, topology.size)) is not None:
        return replace(
            of_ranks(last_come, topology),
            summary=f"rank {last_come.ranks[0]} waits for nobody, and all others wait: a step takes "
            f"{last_come.factor:.1f} times as long",
        )
    if (unnamed := straggling(scene, progress, topology)) is not None:
        return replace(of_ranks(unnamed[0], topology), parts=unnamed[1])
    behind = compare(rates(scene, topology))
    if isinstance(behind, Straggling) and behind.factor >= FEW_SLOWER:
        return of_ranks(behind, topology)
    traces = [trace for trace in progress.traces if len(trace.points) >= 4]
    if (lone := lone_transport(traces, scene, topology)) is not None:
        told = (
            f"{lone.host} talks over plain sockets where the other hosts use {lone.usual}, and steps spend "
            f"{lone.share:.0%} of their time waiting for peers"
        )
        lines = (lone.line, lone.step)
        return Slowness("slow.straggler", (), lines, lone.share, told, hosts=(lone.host,))
    return (
        _starving(traces, scene)
        or _refilled(traces, scene)
        or _held_by_disk(traces, scene)
        or _held_by_host(traces, scene, topology)
    )


def _slow_hosts(scene: Scene, topology: Topology) -> Slowness | None:
    """The hosts that hold the others up, by times that are told of hosts and not of ranks."""
    for told_of, what in ((durations, ""), (pieces, "each piece of work"), (rates, "each of its steps")):
        numbers: dict[str, int] = {}
        of = compare(told_of(scene, topology, numbers))
        # Pieces are no steps of all: machines of several kinds may well differ by a little.
        if isinstance(of, Straggling) and (not what or of.factor >= FEW_SLOWER):
            hosts = tuple(host for host, number in numbers.items() if number in of.ranks)
            field = what or repr(of.field)
            told = f"{', '.join(hosts)}: {of.factor:.1f} times as long for {field} as on the other hosts"
            ranks = tuple(sorted(rank for rank, host in topology.host_of_rank.items() if host in hosts))
            return Slowness("slow.straggler", ranks, of.lines, of.factor, told, of.since, hosts=hosts)
    return None


def of_ranks(found: Straggling, topology: Topology) -> Slowness:
    """The slow ranks, named by their host where they are all of it."""
    hosts = topology.hosts_of(found.ranks)
    whole = (
        len(hosts) == 1
        and len(found.ranks) > 1
        and {rank for rank, host in topology.host_of_rank.items() if host == hosts[0]} == set(found.ranks)
    )
    named = ", ".join(map(str, found.ranks[:8])) + (", …" if len(found.ranks) > 8 else "")
    who = f"host {hosts[0]} (ranks {named})" if whole else f"rank {named}"
    verb = "take" if len(found.ranks) > 1 and not whole else "takes"
    field = f" for {found.field!r}" if found.field else ""
    told = f"{who} {verb} {found.factor:.1f} times as long{field} as the other ranks, which wait"
    return Slowness("slow.straggler", found.ranks, found.lines, found.factor, told, found.since, found)
