"""From findings and a decision to the verdict document."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import logtriage
from logtriage.diagnose.advice import mitigations, restart
from logtriage.diagnose.citation import cite
from logtriage.diagnose.course import stage_and_loss
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.indications import indications
from logtriage.diagnose.missing import missing
from logtriage.diagnose.novel import Novelty
from logtriage.diagnose.story import attempts, chain, summary, timeline
from logtriage.intake.folder import Inventory
from logtriage.localize.candidates import Candidate
from logtriage.localize.findings import Findings
from logtriage.mining.catalogue import Catalogue
from logtriage.mining.joined import Survey
from logtriage.mining.summary import Summary
from logtriage.model import Unreadable
from logtriage.report.document import (
    MOST_INDICATIONS,
    Alternative,
    Checkpoint,
    ClockOffsetOut,
    CulpritsOut,
    Indication,
    Job,
    Mining,
    Symptom,
    Timing,
    Tool,
    UnreadableFile,
    Verdict,
    VerdictBody,
    iso_time,
)
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.rule import Mark
from logtriage.taxonomy import taxonomy

if TYPE_CHECKING:  # its readers are loaded for jobs that left such files
    from logtriage.artefacts.deposits import Deposits

MOST_SYMPTOMS = 12
MOST_WHEN_PARTIAL = 0.5  # what was not read may hold the cause


def compose(
    findings: Findings,
    decision: Decision,
    *,
    inventory: Inventory,
    passed: Survey,
    unreadable: Sequence[Unreadable],
    catalogue: Catalogue,
    novel: int | None,
    novelty: Novelty,
    trial: dict[str, int],
    bank: Bank,
    seconds: float,
    stages: dict[str, float],
) -> Verdict:
    """The whole document; the same bytes and the same version of tool and rules give the same id."""
    kind = taxonomy()[decision.failure_type]
    culprits = CulpritsOut(
        ranks=decision.culprits.ranks, hosts=decision.culprits.hosts, gpus=decision.culprits.gpus
    )
    summaries = passed.summaries
    size = sum(each.bytes for each in summaries)
    lines = sum(each.lines for each in summaries)
    job = _job(findings, decision, inventory)
    stage, lost = stage_and_loss(findings, decision, job.ranks)
    collect = missing(findings, decision, inventory.sources, bank)
    body = VerdictBody(
        failure_type=kind.id,
        failure_class=kind.failure_class,
        title=decision.title or kind.means,
        confidence=min(decision.confidence, MOST_WHEN_PARTIAL) if passed.unread else decision.confidence,
        summary=summary(findings, decision),
        culprits=culprits,
        evidence=tuple(cite(each, findings) for each in decision.evidence),
        action=kind.action,
        restart=restart(decision, findings),
        mitigations=mitigations(decision, findings),
        alternatives=tuple(
            Alternative(
                failure_type=name, confidence=value, evidence=tuple(cite(each, findings) for each in evidence)
            )
            for name, value, evidence in decision.alternatives
        ),
        decided_by=decision.decided_by,  # type: ignore[arg-type]
        chain=chain(findings, decision),
        collect_next=tuple(each.text for each in collect) or decision.collect_next,
        collect=collect,
        stage=stage,
        lost=lost,
    )
    indicated = indications(findings, decision, novelty.lines)
    return Verdict(
        id=_identity(inventory, summaries, bank, findings.deposits),
        tool=Tool(version=logtriage.__version__, rules=bank.version, taxonomy=str(taxonomy().version)),
        job=job,
        verdict=body,
        symptoms=_symptoms(decision),
        indications=_most_telling(indicated),
        indications_total=len(indicated),
        timeline=timeline(findings, decision),
        attempts=attempts(findings, bank),
        mining=Mining(
            files=len({*inventory.sources, *(each.source for each in inventory.artefacts)}),
            bytes=size,
            lines=lines,
            templates=len(catalogue.rows),
            novel_templates=novel,
            compared_with=novelty.baseline,
            compression=round(lines / max(1, len(catalogue.rows)), 1),
            left_out=_left_out(passed, findings),
            trial_rules=trial,
        ),
        unreadable=tuple(UnreadableFile(file=each.file, reason=each.reason) for each in unreadable),
        timing=Timing(
            seconds=round(seconds, 3),
            megabytes_per_second=round(size / 1e6 / max(seconds, 1e-6), 2),
            stages=stages,
        ),
    )


def _left_out(passed: Survey, findings: Findings) -> tuple[str, ...]:
    told = []
    if passed.unread:
        told.append(
            f"the reading was stopped: {passed.unread / 1e6:,.1f} MB of the files were not read, "
            "and the verdict stands on the rest"
        )
    if lines := sum(each.left_out for each in passed.summaries):
        told.append(f"{lines} lines were too different from one another to keep a template of each")
    if lines := sum(each.unmatched for each in passed.summaries):
        told.append(f"{lines} lines were not compared with the rules: too many others looked like them")
    told += [
        f"{each.source.file} begins with {each.earlier} lines of an earlier run, which do not count"
        for each in findings.scene.readings
        if each.earlier
    ]
    return (*told, *(findings.deposits.left_out if findings.deposits else ()))


def _identity(
    inventory: Inventory, summaries: Sequence[Summary], bank: Bank, deposits: Deposits | None
) -> str:
    digest = hashlib.sha256(f"{logtriage.__version__} {bank.version}".encode())
    for source, each in zip(inventory.sources, summaries, strict=True):
        digest.update(f"\0{source.file}\0{each.bytes}\0{each.lines}".encode("utf-8", "surrogateescape"))
        # Samples and captures keep their digits, which keys lack: Xid 79 is not Xid 31.
        for count in each.keys.values():
            digest.update(count.sample + b"\0%d,%d,%d,%d,%d" % (count.count, *count.first, *count.last))
        for (rule, captures), sightings in each.hits.items():
            digest.update(f"\0{rule}{captures}{sightings.count}".encode("utf-8", "surrogatepass"))
    if deposits is not None:
        digest.update(deposits.digest.encode())
    return f"v-{digest.hexdigest()[:16]}"


def _job(findings: Findings, decision: Decision, inventory: Inventory) -> Job:
    times = findings.scene.job_times()
    frameworks = Counter(
        name
        for sign in findings.scene.marked(Mark.FRAMEWORK)
        if (name := sign.rule.framework or sign.hit.capture("framework"))
    )
    numbers = {source.attempt for source in inventory.sources if source.attempt is not None}
    step = findings.progress.last_step
    saved = findings.progress.checkpoints[-1] if findings.progress.checkpoints else None
    number = saved.hit.capture("step") if saved else None
    return Job(
        name=inventory.root.name or str(inventory.root),
        paths=(str(inventory.root),),
        started=iso_time(min(times, default=None)),
        ended=iso_time(max(times, default=None)),
        zone="UTC" if findings.scene.tells_zone else None,
        ranks=max(
            findings.topology.world_size or 0,
            len(findings.topology.ranks | (findings.deposits.ranks if findings.deposits else set())),
        ),
        hosts=findings.topology.hosts,
        attempts=max(1, len(numbers)),
        frameworks=tuple(name for name, _ in frameworks.most_common()),
        outcome=decision.outcome,  # type: ignore[arg-type]
        clock_offsets=tuple(
            ClockOffsetOut(file=each.file, seconds=round(each.seconds, 3), reason=each.reason)
            for each in findings.offsets.values()
        ),
        last_step=step.step if step else None,
        last_checkpoint=Checkpoint(
            step=int(number) if number and number.isdigit() else None,
            time=iso_time(saved.line.time),
            file=saved.line.file,
            line=saved.line.number,
        )
        if saved
        else None,
    )


_ROLES = ("cause", "symptom", "context")


def _most_telling(indicated: Sequence[Indication]) -> tuple[Indication, ...]:
    """As many as a document holds, causes before what followed, in order of files and lines."""
    if len(indicated) <= MOST_INDICATIONS:
        return tuple(indicated)
    chosen = sorted(indicated, key=lambda each: _ROLES.index(each.role))[:MOST_INDICATIONS]
    return tuple(sorted(chosen, key=lambda each: (each.file, each.line)))


def _symptoms(decision: Decision) -> tuple[Symptom, ...]:
    merged: dict[tuple[str, str], list[Candidate]] = {}
    for each in decision.symptoms:
        merged.setdefault((each.failure_type, each.rule.id if each.rule else ""), []).append(each)
    return tuple(
        Symptom(
            failure_type=group[0].failure_type,
            text=group[0].title,
            file=group[0].line.file,
            line=group[0].line.number,
            time=iso_time(group[0].time),
            ranks=tuple(sorted({each.rank for each in group if each.rank is not None})),
            hosts=tuple(sorted({each.host for each in group if each.host is not None})),
            follows_from=decision.failure_type,
        )
        for group in list(merged.values())[:MOST_SYMPTOMS]
    )
