"""One host with another NCCL: where the first exchange between ranks breaks, its version is why.

Those who read what it wrote complain; it only loses them. What each host runs its own banner tells.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from logtriage.diagnose.decision import Decision
from logtriage.diagnose.stated import from_group
from logtriage.localize.cascade import Group
from logtriage.localize.findings import Findings
from logtriage.model import JOB_ROLES, Culprits, Evidence, Line
from logtriage.regex import regex

# What two versions that talk to each other run into.
_MISUNDERSTOOD = ("nccl.bootstrap_truncated", "nccl.internal_error", "nccl.wrong_magic")
_BANNER = regex(r"(?:^|[\s\]])NCCL version (?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)(?=[+\s,]|$)")
LEAST_HOSTS = 3  # of which one stands out


def with_other_version(findings: Findings, root: Group) -> Decision | None:
    """The decision with those hosts as culprits whose banner tells another version than that of most."""
    if not all(each.rule is not None and each.rule.id in _MISUNDERSTOOD for each in root.causes):
        return None
    banners = _banners(findings)
    if len(banners) < LEAST_HOSTS:
        return None
    (usual, count), *others = Counter(version for version, _ in banners.values()).most_common()
    odd = sorted(host for host, (version, _) in banners.items() if version != usual)
    if not others or len(odd) * 2 > count:
        return None
    decision = from_group(findings, root)
    ranks = sorted(rank for rank, host in findings.topology.host_of_rank.items() if host in odd)
    line = banners[odd[0]][1]
    told = f"{', '.join(odd)}: NCCL {banners[odd[0]][0]}, where the other hosts run {usual}"
    return replace(
        decision,
        culprits=Culprits(ranks=tuple(ranks), hosts=tuple(odd)),
        evidence=(*decision.evidence[:1], Evidence(line, told), *decision.evidence[1:]),
        why=told,
    )


def _banners(findings: Findings) -> dict[str, tuple[str, Line]]:
    """By host, the version in its banner and the line; of lines of tracebacks the first is taken as well."""
    found: dict[str, tuple[str, Line]] = {}
    for reading in findings.scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            if "NCCL version" in line.text and (told := _BANNER.search(line.text[:400])) is not None:
                host = findings.topology.host(line, findings.topology.rank(line))
                if host is not None:
                    found.setdefault(host, (told["version"], line))
    return found
