"""The compact evidence file: what was found in a job's logs, in the order of its weight, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from logtriage.agent.addressed import is_addressed
from logtriage.agent.desk import Desk, normal
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.collectives import odd_words, silent_ranks, waits
from logtriage.localize.exits import describe
from logtriage.model import Level, Line, SourceRole
from logtriage.report.document import iso_time
from logtriage.rulebank.rule import Mark

SPEAKING = (SourceRole.WORKER, SourceRole.MERGED, SourceRole.LAUNCHER)
MOST_GROUPS = 8
LAST_LINES = 10
RARE = 3  # a template that stands so often at most is worth showing


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """The text that a model is shown; `left_out` counts entries that did not fit."""

    text: str
    tokens: int
    left_out: int


# Sections in the order in which they are shown, and the order in which they are given room.
_SECTIONS: tuple[tuple[str, int, str], ...] = (
    ("job", 0, "JOB"),
    ("found", 1, "WHAT RULES FOUND (best first; place rank time | line)"),
    ("ends", 3, "HOW PROCESSES ENDED"),
    ("peers", 2, "HOW RANKS DIFFER"),
    ("errors", 4, "ERRORS THAT NO RULE KNOWS"),
    ("last", 5, "LAST LINES"),
    ("followed", 6, "PROBABLY ONLY CONSEQUENCES"),
    ("rare", 8, "RARE LINES NEAR THE END (count x line)"),
    ("before", 7, "CONFIRMED EARLIER DIAGNOSES OF SIMILAR JOBS"),
)


def evidence_file(desk: Desk, budget: int, count: Callable[[str], int]) -> EvidenceFile:
    """The file in at most `budget` tokens: a section gives way to those that weigh more."""
    entries = {
        "job": _job(desk),
        "found": _found(desk),
        "ends": _ends(desk),
        "peers": _peers(desk),
        "errors": _errors(desk),
        "last": _last(desk),
        "followed": _followed(desk),
        "rare": _rare(desk),
        "before": _precedents(desk),
    }
    told: set[str] = set()
    kept: dict[str, list[str]] = {}
    used = left_out = 0
    titles = {name: title for name, _, title in _SECTIONS}
    for name, _, _ in sorted(_SECTIONS, key=lambda section: section[1]):
        for entry in entries[name]:
            words = entry.split(" | ", 1)[-1]
            if entry in told or (name in ("errors", "last", "rare") and words in told):
                continue
            heading = 0 if name in kept else count(titles[name] + "\n")
            cost = count(entry + "\n") + heading
            if used + cost > budget:
                left_out += 1
                continue
            used += cost
            told |= {entry, words}
            kept.setdefault(name, []).append(entry)
    parts = ["\n".join([title, *kept[name]]) for name, _, title in _SECTIONS if name in kept]
    text = "\n".join(parts)
    return EvidenceFile(text, count(text), left_out)


def _job(desk: Desk) -> Iterator[str]:
    findings = desk.findings
    topology = findings.topology
    names = dict.fromkeys(
        name
        for sign in findings.scene.marked(Mark.FRAMEWORK)
        if (name := sign.rule.framework or sign.hit.capture("framework"))
    )
    size = topology.size
    facts = [f"{size or 'unknown number of'} rank{'s' if size != 1 else ''}"]
    facts += [f"hosts {', '.join(map(desk.told, topology.hosts[:6]))}"] if topology.hosts else []
    facts += [f"software {', '.join(map(desk.told, list(names)[:6]))}"] if names else []
    attempts = {source.attempt for source in findings.scene.sources if source.attempt is not None}
    facts += [f"{len(attempts)} attempts"] if len(attempts) > 1 else []
    yield desk.hidden("; ".join(facts))
    step = findings.progress.last_step
    if step is not None:
        of = f" of {step.total}" if step.total else ""
        yield f"last step {step.step}{of} at {iso_time(findings.time(step.line)) or 'unknown time'}"
    if findings.outcome.kind != "unclear":
        yield desk.told(f"by its progress alone: {findings.outcome.kind}; {findings.outcome.why}")


def _found(desk: Desk) -> Iterator[str]:
    cascade = desk.findings.cascade
    groups = [each for each in (cascade.root, *cascade.rivals) if each is not None]
    for group in groups[:MOST_GROUPS]:
        yield from _group(desk, group, most=2)


def _followed(desk: Desk) -> Iterator[str]:
    for group in desk.findings.cascade.followers[:MOST_GROUPS]:
        yield from _group(desk, group, most=1)


_SURENESS = {3: "definite", 2: "likely", 1: "weak"}


def _group(desk: Desk, group: Group, most: int) -> Iterator[str]:
    ranks = sorted(group.ranks)
    where = f" on ranks {_numbers(ranks)}" if ranks else ""
    members = group.causes or group.members
    lines = [desk.cited(each.line) for each in _unlike(members, most)]
    yield "\n".join([f"- {group.failure_type} ({_SURENESS.get(group.sureness, 'symptom')}){where}", *lines])


def _unlike(members: Sequence[Candidate], most: int) -> list[Candidate]:
    """The first members that say different things."""
    chosen: dict[str, Candidate] = {}
    for each in members:
        if not is_addressed(each.line.text):
            chosen.setdefault(each.rule.id if each.rule else each.title, each)
    return list(chosen.values())[:most]


def _ends(desk: Desk) -> Iterator[str]:
    for each in [one for one in desk.findings.exits if one.code != 0][:4]:
        yield f"{desk.cited(each.line, 140)} [{describe(each.code)}]"


def _peers(desk: Desk) -> Iterator[str]:
    findings = desk.findings
    steps: dict[int, int] = {}
    for trace in findings.progress.traces:
        if trace.rank is not None:
            steps[trace.rank] = max(steps.get(trace.rank, 0), trace.last.step)
    if len(set(steps.values())) > 1:
        most = max(steps.values())
        behind = sorted(rank for rank, step in steps.items() if step < most)
        yield f"furthest step {most}; behind: " + ", ".join(
            f"rank {rank} at {steps[rank]}" for rank in behind[:6]
        )
    suspects = silent_ranks(findings.candidates, findings.topology, findings.progress, findings.scene)
    if suspects is not None:
        yield desk.told(f"rank {_numbers(suspects.ranks)} {suspects.reason}")
        for line in odd_words(findings.scene, findings.topology, suspects.ranks):
            yield f"only there: {desk.cited(line)}"
    operations: dict[str, list[int]] = {}
    for each in waits(findings.scene):
        operations.setdefault(f"{each.operation} number {each.sequence}", []).append(each.rank)
    if len(operations) > 1:
        for operation, ranks in list(operations.items())[:4]:
            yield desk.told(f"waiting in {operation}: rank {_numbers(sorted(ranks))}")
    if findings.slowness is not None:
        yield desk.told(findings.slowness.summary)
        for line in findings.slowness.lines[:2]:
            yield desk.cited(line, 140)


def _errors(desk: Desk) -> Iterator[str]:
    """The last lines at error level, and the ends of tracebacks, that are no candidate of a rule."""
    known = {(each.line.file, each.line.number) for each in desk.findings.candidates if each.rule}
    found: list[Line] = []
    for reading in desk.findings.scene.readings:
        if reading.source.role not in SPEAKING:
            continue
        for record in desk.findings.scene.records[reading.source.file]:
            named = [each.at for each in record.raised]
            loud = [line for line in record.lines if line.level in (Level.ERROR, Level.CRITICAL)][:1]
            found += [line for line in named or loud if (line.file, line.number) not in known]
    found.sort(key=lambda line: (desk.findings.time(line) or 0.0, line.number))
    yield from (desk.cited(line) for line in _distinct(reversed(found), 6))


def _last(desk: Desk) -> Iterator[str]:
    """The last words of the files that say most about the end: culprits' first, then the latest."""
    readings = [each for each in desk.findings.scene.readings if each.source.role in SPEAKING and each.lines]
    culprits = desk.decision.culprits.ranks
    readings.sort(
        key=lambda each: (
            each.source.rank not in culprits,
            -max((line.time or 0.0 for line in each.lines[-20:]), default=0.0),
        )
    )
    for number, reading in enumerate(readings[:3]):
        lines = [line for line in reading.lines[-400:] if line.text.strip() and not desk.is_routine(line)]
        last = _distinct(reversed(lines[-60:]), LAST_LINES if number == 0 else 4)
        yield from (desk.cited(line, 160) for line in reversed(last))


def _rare(desk: Desk) -> Iterator[str]:
    """Templates that stand only a few times, and in the last fifth of their file."""
    ends = {each.source.file: each.lines[-1].number for each in desk.findings.scene.readings if each.lines}
    roles = {each.file: each.role for each in desk.inventory.sources}
    rare = [
        row
        for row in desk.catalogue.rows
        if row.count <= RARE
        and roles.get(row.last.file) in SPEAKING
        and row.last.line > 0.8 * ends.get(row.last.file, 0)
    ]
    rare.sort(key=lambda row: (row.count, -row.last.line))
    for row in rare[:12]:
        line = desk.line(row.last.file, row.last.line)
        if line is not None and line.text.strip():
            yield f"{row.count} x {desk.cited(line, 120)}"


def _precedents(desk: Desk) -> Iterator[str]:
    for each in list(desk.precedents)[:3]:
        mended = f"; what helped: {each.mitigation}" if each.mitigation else ""
        yield desk.told(f"{each.failure_type}, likeness {each.likeness:.2f}: {each.title}{mended}")


def _distinct(lines: Iterable[Line], most: int) -> list[Line]:
    """The first lines whose words differ, digits apart."""
    chosen: dict[str, Line] = {}
    for line in lines:
        words = "".join(each for each in normal(line.message or line.text) if not each.isdigit())
        if words and words not in chosen:
            chosen[words] = line
            if len(chosen) == most:
                break
    return list(chosen.values())


def _numbers(ranks: Sequence[int]) -> str:
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return ", ".join(map(str, ranks[:8])) + more
