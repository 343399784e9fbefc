"""Jobs that died of the same: told by type and telling line without what varies, or by type and machine."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logtriage.fleet.hosts import machine_fault_hosts
from logtriage.fleet.jobs import TriagedJob, is_failure, loss
from logtriage.intake.labels import Columns
from logtriage.intake.lines import plain, segments
from logtriage.intake.prefixes import read_head
from logtriage.mining.masks import mask
from logtriage.redaction import Redaction
from logtriage.report.document import Verdict

LONGEST_TEMPLATE = 300  # characters
_PLACEHOLDER = re.compile(r"<([a-z]{2,6})-\d+>")  # of a redaction: which of several it is varies


@dataclass(frozen=True, slots=True)
class Signature:
    """What jobs that died of the same have in common.

    A fault of a machine is told by the machine (`hosts`), everything else by the masked line (`template`).
    """

    failure_type: str
    template: str = ""
    hosts: tuple[str, ...] = ()


def common_title(verdicts: Sequence[Verdict]) -> str:
    """The title of all, or that of the last one with what varies masked."""
    titles = dict.fromkeys(verdict.verdict.title for verdict in verdicts)
    return next(iter(titles)) if len(titles) == 1 else mask(verdicts[-1].verdict.title)


@dataclass(frozen=True, slots=True)
class Incident:
    """Failed jobs of one signature, in order of time; `before` of them were known before this night."""

    signature: Signature
    title: str  # that of its jobs, or what theirs have in common
    jobs: tuple[TriagedJob, ...]
    before: int
    lost_hours: float

    @property
    def is_new(self) -> bool:
        """None of its jobs was known before this night."""
        return self.before == 0

    @property
    def tonight(self) -> int:
        return len(self.jobs) - self.before

    @property
    def hosts(self) -> tuple[str, ...]:
        named = (host for job in self.jobs for host in job.verdict.verdict.culprits.hosts)
        return tuple(dict.fromkeys(named))


def signature(verdict: Verdict) -> Signature:
    """The signature of a verdict; the template is empty where it cites no line."""
    kind = verdict.verdict.failure_type
    if hosts := machine_fault_hosts(verdict):
        return Signature(kind, hosts=tuple(sorted(hosts)))
    return Signature(kind, template(verdict))


def template(verdict: Verdict) -> str:
    """The cited line that a rule named, else the first: without head, secrets, and everything that varies."""
    evidence = verdict.verdict.evidence
    cited = next((each for each in evidence if each.rule), next(iter(evidence), None))
    if cited is None:
        return ""
    hosts = frozenset((*verdict.job.hosts, *verdict.verdict.culprits.hosts))
    text = segments(plain(cited.text.encode("utf-8", "surrogatepass")))[-1]
    # `3: ` of srun and `host: ` of pdsh are labels where they begin a line that a rule found telling.
    text = read_head(text, Columns(srun_labels=True, host_labels=hosts)).message
    # Before as well, so that a verdict without secrets has the template of the one with them.
    return mask(_unnumbered(Redaction(hosts=hosts).redact(_unnumbered(text))))[:LONGEST_TEMPLATE]


def _unnumbered(text: str) -> str:
    return _PLACEHOLDER.sub(lambda each: f"<{each[1].upper()}>", text)


def incidents(jobs: Iterable[TriagedJob], night: int) -> list[Incident]:
    """Failed jobs grouped by signature: those with jobs of this night first, the most jobs first."""
    groups: dict[Signature, list[TriagedJob]] = defaultdict(list)
    for job in jobs:
        if is_failure(job.verdict) and job.failure_type != "unknown":
            groups[signature(job.verdict)].append(job)
    found = [_incident(told, members, night) for told, members in groups.items()]
    return sorted(
        found,
        key=lambda each: (
            not each.tonight, -each.tonight, -len(each.jobs), each.signature.failure_type,
            each.signature.hosts, each.signature.template,
        ),
    )  # fmt: skip


def _incident(told: Signature, members: Sequence[TriagedJob], night: int) -> Incident:
    ordered = tuple(sorted(members, key=lambda job: (job.ended or 0.0, job.key)))
    losses = (loss(job) for job in ordered)
    return Incident(
        signature=told,
        title=common_title([job.verdict for job in ordered]),
        jobs=ordered,
        before=sum(job.night != night for job in ordered),
        lost_hours=sum(each.hours for each in losses if each is not None),
    )
