"""A host with fewer network adapters than its peers, in a job whose first exchange never ends.

Each rank of NCCL tells at its start which adapters it found. A peer that builds a channel over one that the
other side has not waits for it in vain, once the check against that is silenced or an adapter fails to open.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from logtriage.diagnose.decision import Decision
from logtriage.localize.findings import Findings
from logtriage.model import JOB_ROLES, Culprits, Evidence, Line
from logtriage.regex import regex

CONFIDENCE = 0.7
FIRST_STEPS = 1  # beyond which the exchange had worked
LEAST_HOSTS = 3  # of fewer, one of two that differ is odd only if an adapter failed to open there
_USES = regex(r"NET/IB ?: Using (?P<adapters>\[\d{1,3}\][^\n;]{1,2000})")
_ADAPTER = regex(r"\[\d{1,3}\](?:\{[^}\n]{0,40}\} ?)?(?P<name>[\w.+-]{2,80}):\d{1,3}")
_FAILED = regex(r"NET/IB ?: Unable to (?:open|query) device (?P<name>[\w.+-]{2,40})")


def with_fewer_adapters(findings: Findings, decision: Decision) -> Decision:
    """The decision; where nobody is blamed for a first exchange, with the host that lacks an adapter."""
    if decision.failure_type not in ("hang.silent", "collective.timeout") or decision.culprits != Culprits():
        return decision
    if any(trace.last.step > FIRST_STEPS for trace in findings.progress.traces):
        return decision
    used: dict[str, set[str]] = defaultdict(set)
    first: dict[str, Line] = {}
    failed: dict[str, Line] = {}
    for reading in findings.scene.readings:
        for line in reading.lines if reading.source.role in JOB_ROLES else ():
            if "NET/IB" not in line.text[:400]:
                continue
            uses, lacks = _USES.search(line.text[:3000]), _FAILED.search(line.text[:600])
            host = findings.topology.host(line, findings.topology.rank(line)) if uses or lacks else None
            if host is None:
                continue
            if uses is not None:
                used[host] |= {each["name"] for each in _ADAPTER.finditer(uses["adapters"])}
                first.setdefault(host, line)
            else:
                failed.setdefault(host, line)
    most = max((len(names) for names in used.values()), default=0)
    fewer = sorted(host for host, names in used.items() if len(names) < most)
    is_odd = len(fewer) * 2 < len(used) if len(used) >= LEAST_HOSTS else bool(fewer) and fewer[0] in failed
    if not fewer or not is_odd or (failed and not failed.keys() <= set(fewer)):
        return decision
    why = f"{', '.join(fewer)} found fewer network adapters than its peers, which have {most}"
    told = tuple(Evidence(failed.get(host, first[host]), why) for host in fewer[:2])
    at = 1 if decision.failure_type == "hang.silent" else min(2, len(decision.evidence))
    return replace(
        decision,
        confidence=min(decision.confidence, CONFIDENCE),
        culprits=Culprits(hosts=tuple(fewer)),
        evidence=(*decision.evidence[:at], *told, *decision.evidence[at:]),
        why="; ".join(filter(None, (decision.why, why))),
    )
