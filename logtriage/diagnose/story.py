"""The verdict told in order: summary, chain from cause to end, timeline, and each attempt."""

from __future__ import annotations

from dataclasses import replace

from logtriage.diagnose.citation import cite
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.offline import decide
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import group, untangle
from logtriage.localize.findings import Findings
from logtriage.report.document import Attempt, ChainStep, CulpritsOut, TimelineEntry, iso_time
from logtriage.report.words import sentence, type_name
from logtriage.rulebank.bank import Bank
from logtriage.taxonomy import taxonomy

MOST_STEPS = 6
MOST_ENTRIES = 60


def summary(findings: Findings, decision: Decision) -> str:
    """Two to five sentences: what happened first, where, what followed from it, how far the job was."""
    sentences = [_sentence(decision.title)]
    where = _where(decision)
    if where:
        sentences.append(where)
    elif decision.why and decision.why.lower() != decision.title.lower():
        sentences.append(_sentence(decision.why))
    followed = list(dict.fromkeys(each.failure_type for each in decision.symptoms))
    named = [type_name(each) for each in followed if each not in (decision.failure_type, "unknown")]
    if named and decision.outcome == "failed":
        sentences.append(f"What followed: {'; '.join(named[:4])}.")
    step = findings.progress.last_step
    if step is not None:
        of = f" of {step.total}" if step.total else ""
        sentences.append(f"The last step in the logs is {step.step}{of}.")
    return " ".join(sentences[:5])


def _where(decision: Decision) -> str:
    ranks, hosts = decision.culprits.ranks, decision.culprits.hosts
    parts = []
    if ranks:
        parts.append(f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:8]))}")
    if hosts:
        parts.append(f"host{'s' if len(hosts) > 1 else ''} {', '.join(hosts[:4])}")
    if not parts:
        return ""
    place = " on ".join(parts)
    told = f": {decision.why}" if decision.why and "seen on" not in decision.why else ""
    return _sentence(f"It began at {place}{told}")


def _sentence(text: str) -> str:
    text = sentence(text)
    return text + ("" if text.endswith((".", "!", "?")) else ".")


def chain(findings: Findings, decision: Decision) -> tuple[ChainStep, ...]:
    """From the root to the end: one step for each type that followed, in order of time."""
    if decision.root is None:
        return ()
    steps = [_step(1, decision.root, None)]
    told = {decision.failure_type}
    for each in decision.symptoms:
        if each.failure_type in told or len(steps) >= MOST_STEPS:
            continue
        told.add(each.failure_type)
        steps.append(_step(len(steps) + 1, each, _edge(decision.root, each)))
    return tuple(steps)


def _edge(root: Candidate, effect: Candidate) -> str:
    if root.rank is not None and effect.rank == root.rank:
        return f"same rank ({root.rank})"
    if root.host is not None and effect.host == root.host:
        return f"same host ({root.host})"
    if effect.failure_type.startswith("collective."):
        return "a peer that no longer answers"
    if effect.failure_type.startswith(("process.", "scheduler.")):
        return "the job is taken down"
    return "known to follow from it"


def _step(number: int, candidate: Candidate, follows_by: str | None) -> ChainStep:
    return ChainStep(
        step=number,
        failure_type=candidate.failure_type,
        text=candidate.title,
        file=candidate.line.file,
        line=candidate.line.number,
        follows_by=follows_by,
    )


def timeline(findings: Findings, decision: Decision) -> tuple[TimelineEntry, ...]:
    """First sign, spread, end: candidates and milestones with a time, in its order."""
    entries: list[tuple[float, TimelineEntry]] = []

    def add(kind: str, text: str, candidate: Candidate) -> None:
        if candidate.time is not None:
            entries.append(
                (
                    candidate.time,
                    TimelineEntry(
                        time=iso_time(candidate.time),
                        kind=kind,
                        text=text,
                        file=candidate.line.file,
                        line=candidate.line.number,
                        rank=candidate.rank,
                        host=candidate.host,
                    ),
                )
            )

    seen: set[tuple[str, str, int | None]] = set()
    for each in findings.candidates:
        key = (each.failure_type, each.title, each.rank)
        if key in seen:
            continue
        seen.add(key)
        role = "cause" if each.failure_type == decision.failure_type else "symptom"
        kind = "recovered" if each.recovered else role
        add(kind, each.title, each)
    step = findings.progress.last_step
    if step is not None and step.line.time is not None:
        entries.append(
            (
                step.line.time,
                TimelineEntry(
                    time=iso_time(step.line.time),
                    kind="progress",
                    text=f"last step: {step.step}",
                    file=step.line.file,
                    line=step.line.number,
                    rank=step.line.rank,
                    host=step.line.host,
                ),
            )
        )
    comparison = findings.deposits.comparison if findings.deposits else None
    for point in comparison.points if comparison else ():
        if point.time is not None:
            entry = TimelineEntry(
                time=iso_time(point.time),
                kind="cause" if point.rank in decision.culprits.ranks else "symptom",
                text=f"flight recorder: rank {point.rank} {point.text}",
                file=point.file,
                rank=point.rank,
            )
            entries.append((point.time, entry))
    entries.sort(key=lambda item: item[0])
    return tuple(entry for _, entry in entries[:MOST_ENTRIES])


def attempts(findings: Findings, bank: Bank) -> tuple[Attempt, ...]:
    """A short verdict on each attempt, where the logs tell several apart."""
    numbers = sorted({each.attempt for each in findings.candidates if each.attempt is not None})
    if len(numbers) < 2:
        return ()
    found = []
    for number in numbers:
        members = [each for each in findings.candidates if each.attempt == number]
        cascade = untangle(group(members, bank.explains))
        if cascade.root is None:
            continue
        decision = decide(_only(findings, members, bank, with_dumps=number == numbers[-1]))
        times = [each.time for each in members if each.time is not None]
        kind = taxonomy()[decision.failure_type]
        found.append(
            Attempt(
                attempt=number,
                started=iso_time(min(times, default=None)),
                ended=iso_time(max(times, default=None)),
                outcome=decision.outcome,  # type: ignore[arg-type]
                failure_type=kind.id,
                failure_class=kind.failure_class,
                title=decision.title,
                confidence=decision.confidence,
                culprits=CulpritsOut(ranks=decision.culprits.ranks, hosts=decision.culprits.hosts),
                evidence=tuple(cite(each, findings) for each in decision.evidence[:2]),
            )
        )
    return tuple(found)


def _only(findings: Findings, members: list[Candidate], bank: Bank, *, with_dumps: bool) -> Findings:
    return replace(
        findings,
        candidates=tuple(members),
        cascade=untangle(group(members, bank.explains)),
        find_slowness=lambda: None,
        deposits=findings.deposits if with_dumps else None,
    )
