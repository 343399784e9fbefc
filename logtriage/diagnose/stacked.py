"""Which ranks stand elsewhere than the others, once it is known whose stacks they are and who went on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logtriage.localize.findings import Findings
from logtriage.model import Evidence

if TYPE_CHECKING:  # its readers are loaded for jobs that left such files
    from logtriage.artefacts.ras import RasFinding
    from logtriage.artefacts.stack_text import StackDump
    from logtriage.artefacts.stacks import Process, StackComparison


def odd_stacks(findings: Findings) -> StackComparison | None:
    """The comparison of the stacks that were taken when nothing moved any more."""
    if findings.deposits is None or not findings.deposits.stacks:
        return None
    from logtriage.artefacts.stacks import compare_stacks

    last_steps: dict[str, int] = {}
    for trace in findings.progress.traces:
        for point in trace.points:
            file = point.line.file
            last_steps[file] = max(last_steps.get(file, 0), point.line.number)
    return compare_stacks(
        (_process(dump, findings), dump)
        for dump in findings.deposits.stacks
        if dump.last_line > last_steps.get(dump.file, 0)  # its process went on: a periodic dump
    )


def _process(dump: StackDump, findings: Findings) -> Process:
    from logtriage.artefacts.stacks import Process

    topology = findings.topology
    rank = dump.rank
    host = dump.host or topology.host_of_file.get(dump.file)
    if rank is None and dump.pid is not None:
        rank = topology.rank_of_pid.get((host, dump.pid), topology.rank_of_pid.get((None, dump.pid)))
    if rank is None and dump.local_rank is not None:
        rank = topology.global_rank(host, dump.local_rank)
    if rank is not None:
        return Process(rank, None, None, "")  # dumps of one rank in several files are rounds
    return Process(None, host, dump.pid, dump.file if dump.pid is None else "")


def stack_evidence(found: StackComparison) -> tuple[Evidence, ...]:
    """The frame that tells of the odd ones first, then that of the others."""
    odd, others = found.odd[0].told, found.others[0].told if found.others else "the others"
    return (
        Evidence(found.there.line, f"{odd} stands here"),
        Evidence(found.usual.line, f"{others} and most others stand here"),
    )


def ras_ranks(found: RasFinding, findings: Findings) -> tuple[int, ...]:
    """The job's ranks of the processes that NCCL's report names, by process id where the logs know it."""
    pids = findings.topology.rank_of_pid
    ranks = set()
    for peer in found.peers:
        rank = pids.get((peer.host, peer.pid), pids.get((None, peer.pid))) if peer.pid is not None else None
        rank = peer.rank if rank is None else rank
        if rank is not None:
            ranks.add(rank)
    return tuple(sorted(ranks))


def ras_evidence(found: RasFinding) -> tuple[Evidence, ...]:
    return tuple(Evidence(line, found.told) for line in found.lines)
