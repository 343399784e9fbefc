"""A rank with more batches than its peers: they are done and leave, and it waits for them in its next step.

The others say nothing of a time-out, so that it is not they who are missing: they came to their own end.
"""

from __future__ import annotations

from logtriage.diagnose.decision import Decision
from logtriage.localize.cascade import Group
from logtriage.localize.findings import Findings
from logtriage.localize.progress import Trace, by_rank
from logtriage.model import Culprits, Evidence, Line

MOST_SHARE = 4  # of so many ranks one may have more to do than the others


def left_alone(findings: Findings, root: Group) -> Decision | None:
    """The few ranks that wait in vain in a step that all others, being done, do not have."""
    if root.failure_type != "collective.timeout":
        return None
    waiting = {each.rank for each in root.causes if each.rank is not None}
    traces = by_rank(findings.progress.traces)
    others = [trace for rank, trace in traces.items() if rank not in waiting]
    if not waiting or len(others) < 2 or len(waiting) * MOST_SHARE > len(traces):
        return None
    if not waiting <= set(traces) or len(traces) < findings.topology.size:
        return None
    ends = {(trace.last.step, trace.goal) for trace in others}
    if len(ends) != 1:
        return None
    end, goal = ends.pop()
    if goal != end or any(max(traces[rank].last.step, traces[rank].goal or 0) <= end for rank in waiting):
        return None
    ranks = tuple(sorted(waiting))
    complaint = next(each for each in root.causes if each.rank == ranks[0])
    own = [
        Evidence(_before(traces[rank], root, findings), f"rank {rank} has this step, its peers do not")
        for rank in ranks
    ]
    told = complaint.rule.id if complaint.rule else None
    return Decision(
        failure_type="collective.desync",
        title=f"Rank {', '.join(map(str, ranks))} had more steps than its peers, and waited for them alone",
        confidence=0.75,
        culprits=Culprits(ranks=ranks, hosts=tuple(findings.topology.hosts_of(ranks))),
        evidence=(
            *own[:2],
            Evidence(complaint.line, complaint.title, told),
            Evidence(others[0].last.line, "a peer's last step: it was done"),
        ),
        decided_by="localisation",
        why=f"all other ranks came to the end of their {end} steps, and none of them waited",
        outcome="failed",
        root=complaint,
        symptoms=tuple(root.members[:3]),
    )


def _before(trace: Trace, root: Group, findings: Findings) -> Line:
    """What a rank wrote last before it complained, at its last step or behind it."""
    complaints = [each.line.number for each in root.causes if each.line.file == trace.file]
    above = [
        line
        for line in findings.scene.lines(trace.file)
        if line.text.strip() and trace.last.line.number <= line.number < min(complaints, default=0)
    ]
    return above[-1] if above else trace.last.line
