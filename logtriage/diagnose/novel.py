"""Lines that no rule knows and that set the failure apart: indications, and evidence where none decides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from logtriage.diagnose.course import onset
from logtriage.diagnose.culprits import OF_A_MACHINE
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.quiet import undecided
from logtriage.localize.at_work import is_look
from logtriage.localize.findings import Findings
from logtriage.localize.rarity import (
    REPORTED_SECONDS,
    failing_windows,
    late_kinds,
    lines_of_kinds,
    lone_kinds,
    of_most_ranks,
)
from logtriage.localize.usual_course import UsualCourse
from logtriage.mining.kinds import key_of
from logtriage.mining.summary import Key, Summary
from logtriage.model import Culprits, Evidence, Level, Line, Source, SourceRole
from logtriage.regex import regex

MOST_CITED = 3
LEAST_PEERS = 4  # of fewer ranks, one that alone writes something stands out by chance
# What programs say when something is wrong; of lines that no rule knows these are cited first.
_COMPLAINS = regex(
    r"(?i)\b(?:error|fail\w*|fatal|exception|abort\w*|panic|corrupt\w*|mismatch\w*|differ\w*|invalid|cannot"
    r"|could not|unable|refus\w*|denied|lost|stopp\w*|kill\w*|unexpected|violat\w*|broken|overflow|stuck|dead"
    r"|expired|giving up|timed? ?out|unreachable|missing|exhausted|inconsistent|not found)\b"
)
STEPS_BEFORE = 2
_OF_RANKS = (SourceRole.WORKER, SourceRole.MERGED)
_LOUD = (Level.WARNING, Level.ERROR, Level.CRITICAL)
_RUNS = "earlier runs"
_PART = "the healthy part of this run"


@dataclass(frozen=True, slots=True)
class Novelty:
    """Rare lines by file and number, and what they were held against (None: nothing could be compared)."""

    lines: frozenset[tuple[str, int]] = frozenset()
    baseline: str | None = None


def novelty(
    findings: Findings,
    decision: Decision,
    root: Path,
    sources: Sequence[Source],
    summaries: Sequence[Summary],
    usual: Collection[Key] | None,
) -> Novelty:
    """The lines of kinds that came only where the failure lies, or from the blamed host alone.

    `usual` are the kinds of earlier good runs, None without any.
    """
    if decision.failure_type.startswith(("none.completed", "slow.")):
        return Novelty()
    if decision.failure_type == "none.running" and usual is None:
        return Novelty()  # what begins in the middle of a run need not be bad
    windows = _windows(findings, decision, sources, summaries, everywhere=usual is not None)
    kinds = late_kinds(sources, summaries, windows, usual or ())
    if decision.failure_type != "hang.silent":  # what all did at once just before is part of it
        wide = _windows(findings, decision, sources, summaries, everywhere=False, earlier=STEPS_BEFORE)
        kinds |= _of_most_files(late_kinds(sources, summaries, wide, usual or ()), sources, summaries)
    if len(decision.culprits.hosts) == 1 and decision.failure_type.startswith(OF_A_MACHINE):
        host = decision.culprits.hosts[0]
        readings, topology = findings.scene.readings, findings.topology
        alone = lone_kinds(sources, summaries, readings, topology, host).difference(usual or ())
        kinds |= of_most_ranks(root, sources, summaries, readings, topology, alone - kinds)
    baseline = _RUNS if usual is not None else _PART if windows else None
    return Novelty(frozenset(lines_of_kinds(root, sources, summaries, kinds)), baseline)


def _of_most_files(
    kinds: frozenset[Key], sources: Sequence[Source], summaries: Sequence[Summary]
) -> frozenset[Key]:
    """Those that more than half of the job's own files have."""
    files = [each for source, each in zip(sources, summaries, strict=True) if source.role in _OF_RANKS]
    return frozenset(key for key in kinds if sum(key in each.keys for each in files) * 2 > len(files))


def _windows(
    findings: Findings,
    decision: Decision,
    sources: Sequence[Source],
    summaries: Sequence[Summary],
    *,
    everywhere: bool,
    earlier: int = 0,
) -> dict[str, list[tuple[int, int]]]:
    if everywhere and decision.failure_type in ("unknown", "none.running"):
        return {source.file: [(1, 1 << 62)] for source in sources}
    line, began = onset(findings, decision)
    if line is None or began is None:
        return {}
    writers = {source.file for source in sources if source.rank in decision.culprits.ranks} | {line.file}
    progress = findings.progress.with_one_count()
    kept = {source.file: summary for source, summary in zip(sources, summaries, strict=True)}
    windows = failing_windows(findings.scene.readings, kept, progress, began, writers, earlier)
    if decision.failure_type == "hang.silent":  # what others write on while the ranks are silent is no sign
        silent = _silent_files(findings) | {source.file for source in sources if source.rank is not None}
        windows = {file: spans for file, spans in windows.items() if file in silent}
    return windows


def _silent_files(findings: Findings) -> set[str]:
    """The files that told of steps, and those of processes that wrote nothing after these ended."""
    # What a person typed beside the logs, and what that printed, quotes steps and makes none.
    asked = {each.source.file for each in findings.scene.readings if is_look(each.lines)}
    stepped = {trace.file for trace in findings.progress.traces} - asked
    ends = {
        reading.source.file: max((line.time for line in reading.lines if line.time is not None), default=None)
        for reading in findings.scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED)
    }
    last = max((end for file in stepped if (end := ends.get(file)) is not None), default=None)
    return stepped | {
        file
        for file, end in ends.items()
        if last is not None and end is not None and end <= last + REPORTED_SECONDS
    }


def with_novel_lines(findings: Findings, decision: Decision, novel: Novelty) -> Decision:
    """An undecided verdict with the novel lines as evidence, and of whom they are if of one alone.

    A job that seems to run is undecided, too, if behind its last step it complains of what no good run knew.
    Of a hang they show what was said last, where rarely anything complains.
    """
    if decision.failure_type not in ("unknown", "none.running", "hang.silent") or not novel.lines:
        return decision
    told = [
        line
        for reading in findings.scene.readings
        for line in reading.lines
        if (line.file, line.number) in novel.lines and line.text.strip()
    ]
    complaints = [line for line in told if line.level in _LOUD or _COMPLAINS.search(line.message[:600])]
    if decision.failure_type == "none.running":
        course = UsualCourse(findings.scene, findings.topology)
        complaints = [line for line in complaints if not course.went_on_behind(line, line)]
        if not complaints:
            return decision
        decision = undecided(findings)
    kinds = sorted(_kinds(complaints or told), key=lambda lines: (_writers(lines), _first_time(lines)))
    if not kinds:
        return decision
    never = f"that {novel.baseline} never had"
    chosen = tuple(Evidence(lines[0], f"a line of a kind {never}") for lines in kinds[:MOST_CITED])
    cited = {each.line for each in chosen}
    if decision.failure_type == "hang.silent":
        known = {each.line for each in decision.evidence}
        said = [each for each in chosen if each.line not in known]
        last_words = max(1, len(decision.evidence) - 1)  # behind them stands who writes on
        evidence = (*decision.evidence[:last_words], *said, *decision.evidence[last_words:])
        return replace(decision, evidence=evidence[: MOST_CITED + 1])
    return replace(
        decision,
        evidence=(*chosen, *(each for each in decision.evidence if each.line not in cited))[: MOST_CITED + 1],
        culprits=_whose(findings, kinds[0]) if decision.culprits == Culprits() else decision.culprits,
        decided_by="localisation",
        why=f"no line states a cause that can be trusted, but some are of kinds {never}",
    )


def _kinds(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines by their kind, each in order of files and numbers."""
    found: dict[Key, list[Line]] = {}
    for line in lines:
        found.setdefault(key_of(line.text), []).append(line)
    return list(found.values())


def _writers(lines: Sequence[Line]) -> int:
    return len({(line.file, line.rank) for line in lines})


def _first_time(lines: Sequence[Line]) -> float:
    return min((line.time for line in lines if line.time is not None), default=float("inf"))


def _whose(findings: Findings, lines: Sequence[Line]) -> Culprits:
    """The one rank, or the one host, that wrote these lines, if there are enough others who did not."""
    topology = findings.topology
    ranks = {topology.rank(line) for line in lines}
    hosts = {topology.host(line, topology.rank(line)) for line in lines}
    one_host = tuple(host for host in hosts if host) if len(hosts) == 1 and len(topology.hosts) > 1 else ()
    if len(ranks) == 1 and topology.size >= LEAST_PEERS and (rank := next(iter(ranks))) is not None:
        return Culprits(ranks=(rank,), hosts=one_host or tuple(topology.hosts_of((rank,))))
    return Culprits(hosts=one_host if len(topology.hosts) >= LEAST_PEERS else ())
