"""Routine lines of a job family: what every healthy run writes again and again, kept from run to run.

The family's filter rules are learned from healthy history alone, or proposed by a model's votes
(`log_agent`); either way each is checked here before it is used, on every job anew (the Log Agent of Acme,
NSDI'24, section 6.1, with a guard in code). A filter is the masked text of a line, as mining makes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from logtriage.intake.lines import plain, segments
from logtriage.localize.findings import Findings
from logtriage.mining.catalogue import Catalogue, TemplateRow
from logtriage.mining.masks import mask
from logtriage.model import Level, Line
from logtriage.report.document import RoutineLines
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Mark, Role
from logtriage.written import write

LEAST_COUNT = 20  # a template that stands less often is rare, and what is rare may be telling
MOST_FILTERS = 2_000  # of one family
LONGEST = 400  # characters of a filter
SAME_FAMILY = 0.5  # of a family's filters that a job must write to belong to it
LAST_SECONDS = 180.0  # before a job's end nothing is dropped
LAST_LINES = 60  # nor of the end of a file without times

_ERROR_LIKE = re.compile(
    r"(?i)err|fail|fault|exception|traceback|warn|fatal|crit|abort|kill|panic|corrupt|invalid|denied|refus|"
    r"timed? ?out|timeout|unable|cannot|can't|could not|lost|missing|retry|dead|hang|stuck|\bnan\b|\binf\b|"
    r"overflow|oom|out of|exit|signal|terminat|evict|preempt|cancel|\bxid\b|ecc|reset|unreach|disconnect|slow"
)


@dataclass(frozen=True, slots=True)
class Family:
    """Jobs of one kind: the same software and the same vocabulary of templates."""

    id: str
    frameworks: tuple[str, ...]
    filters: frozenset[str] = frozenset()
    source: str = "history"  # history | model
    jobs: int = 0  # whose logs the filters were learned from


@dataclass(slots=True)
class Routine:
    """The filters of a family that passed the check for one job."""

    family: Family
    filters: frozenset[str]
    findings: Findings
    matcher: Matcher
    _ends: dict[str, int] = field(default_factory=dict)
    _end: float | None = None

    def __post_init__(self) -> None:
        times = []
        for reading in self.findings.scene.readings:
            if reading.lines:
                self._ends[reading.source.file] = reading.lines[-1].number
                times += [line.time for line in reading.lines[-200:] if line.time is not None]
        self._end = max(times, default=None)

    def drops(self, line: Line) -> bool:
        """Whether a line is routine. Never one near the end, at a level above INFO, or that a rule knows."""
        if line.level in (Level.WARNING, Level.ERROR, Level.CRITICAL):
            return False
        if line.number > self._ends.get(line.file, 0) - LAST_LINES:
            return False
        if self._end is not None and line.time is not None and line.time > self._end - LAST_SECONDS:
            return False
        return masked(line.text) in self.filters and not _is_known(line.text, self.matcher)


def masked(text: str) -> str:
    """A line as mining masks it."""
    return mask(plain(text.encode("utf-8", "surrogatepass")).strip())


def is_error_like(text: str) -> bool:
    return _ERROR_LIKE.search(text) is not None


def passing(
    filters: Iterable[str], rows: Sequence[TemplateRow], findings: Findings, matcher: Matcher
) -> frozenset[str]:
    """The filters that may be used on this job.

    None of a rare template, of one that looks like an error, or of one in which a rule sees a failure.
    """
    wanted = set(filters)
    counts: dict[str, int] = {}
    for row in rows:
        for text in row.masked & wanted:
            counts[text] = row.count
    known = {masked(each.line.text) for each in findings.candidates}
    return frozenset(
        text
        for text, count in counts.items()
        if count >= LEAST_COUNT
        and len(text) <= LONGEST
        and text not in known
        and not is_error_like(text)
        and not _is_known(text, matcher)
    )


def _is_known(text: str, matcher: Matcher) -> bool:
    """Whether a rule sees a cause or a symptom in a line (of a masked one: with 1 for each number)."""
    hits = (hit for part in segments(text.replace("<NUM>", "1")) for hit in matcher.match(part))
    return any(hit.rule.role in (Role.CAUSE, Role.SYMPTOM) for hit in hits)


def frameworks_of(findings: Findings) -> tuple[str, ...]:
    names = {
        name
        for sign in findings.scene.marked(Mark.FRAMEWORK)
        if (name := sign.rule.framework or sign.hit.capture("framework"))
    }
    return tuple(sorted(names))


def learned(frameworks: Sequence[str], healthy: Sequence[Catalogue]) -> Family | None:
    """The filters that healthy runs agree on: what each of them wrote at least LEAST_COUNT times."""
    common: set[str] | None = None
    for run in healthy:
        frequent = {text for row in run.rows if row.count >= LEAST_COUNT for text in row.masked}
        common = frequent if common is None else common & frequent
    if not common:
        return None
    filters = frozenset(sorted(text for text in common if len(text) <= LONGEST)[:MOST_FILTERS])
    return Family(_id(frameworks, filters), tuple(frameworks), filters, "history", len(healthy))


def proposed(frameworks: Sequence[str], filters: Iterable[str]) -> Family:
    """A family whose filters a model's votes proposed."""
    chosen = frozenset(sorted(filters)[:MOST_FILTERS])
    return Family(_id(frameworks, chosen), tuple(frameworks), chosen, "model", 1)


def _id(frameworks: Sequence[str], filters: Iterable[str]) -> str:
    digest = hashlib.sha256("\0".join([*frameworks, "", *sorted(filters)]).encode("utf-8", "replace"))
    return f"f-{digest.hexdigest()[:12]}"


def family_of(families: Iterable[Family], frameworks: Sequence[str], texts: frozenset[str]) -> Family | None:
    """The family that a job belongs to by its software and most of the family's vocabulary; the nearest."""
    best: tuple[float, str, Family] | None = None
    for family in families:
        share = len(family.filters & texts) / max(1, len(family.filters))
        if family.frameworks == tuple(frameworks) and share >= SAME_FAMILY:
            best = max(best or (0.0, "", family), (share, family.id, family), key=lambda each: each[:2])
    return best[2] if best else None


def keep(family: Family, data_dir: Path) -> None:
    """Write a family's filters; a reader never sees half a file. Raises OSError."""
    folder = data_dir / "families"
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(exist_ok=True)
    document = {
        "id": family.id,
        "frameworks": list(family.frameworks),
        "source": family.source,
        "jobs": family.jobs,
        "filters": sorted(family.filters),
    }
    write(folder / f"{family.id}.json", json.dumps(document, ensure_ascii=True, indent=1), 0o600)


def families(data_dir: Path) -> list[Family]:
    """All families that were kept; what cannot be read is none."""
    found = []
    try:
        paths = sorted((data_dir / "families").glob("f-*.json"))
    except OSError:
        return []
    for path in paths:
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            filters = frozenset(str(each)[: LONGEST + 1] for each in told["filters"][:MOST_FILTERS])
            names = tuple(map(str, told["frameworks"]))
            found.append(Family(str(told["id"]), names, filters, str(told["source"]), int(told["jobs"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def recognised(
    findings: Findings, catalogue: Catalogue, healthy: Sequence[Catalogue], matcher: Matcher, data_dir: Path
) -> Routine | None:
    """The routine of a job: learned from earlier runs that are given, else that of a family that was kept."""
    names = frameworks_of(findings)
    if healthy:
        family = learned(names, healthy)
        if family is not None:
            with contextlib.suppress(OSError):  # it serves this job all the same
                keep(family, data_dir)
    else:
        family = family_of(families(data_dir), names, catalogue.masked)
    if family is None:
        return None
    filters = passing(family.filters, catalogue.rows, findings, matcher)
    return Routine(family, filters, findings, matcher)


def told(routine: Routine, catalogue: Catalogue) -> RoutineLines:
    """For the document: how many lines the filters know. Those near the end are shown all the same."""
    lines = sum(row.count for row in catalogue.rows if row.masked and row.masked <= routine.filters)
    total = sum(row.count for row in catalogue.rows)
    return RoutineLines(
        family=routine.family.id,
        source="model" if routine.family.source == "model" else "history",
        filters=len(routine.filters),
        lines=lines,
        share=round(lines / max(1, total), 3),
    )
