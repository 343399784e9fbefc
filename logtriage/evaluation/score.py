"""One verdict beside what is known of its job: what was right, and why the rest was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.evaluation.case import Case
from logtriage.evaluation.lines import JobLines, Place, shows, squeezed
from logtriage.report.document import Verdict
from logtriage.taxonomy import taxonomy

CITED = 3  # of the cited lines so many may show the cause
OVERCLAIM = 0.8  # confidence from which a wrong type is an overclaim
_COMPARED = 60  # characters of a cited line that must stand there


@dataclass(frozen=True, slots=True)
class Score:
    """What was right of a verdict; None where the label does not say.

    `alarm`: a failure is named of a job that is well. `misses` say in words what was wrong and why.
    """

    case: str
    truth: str
    accepted: tuple[str, ...]
    got: str = ""
    confidence: float = 0.0
    decided_by: str = ""
    error: str = ""  # why there is no verdict
    type: bool = False
    class_: bool = False
    sound: bool = False
    evidence: bool | None = None
    rank: bool | None = None
    host: bool | None = None
    alarm: bool | None = None
    seconds: float = 0.0
    misses: tuple[str, ...] = ()

    @property
    def overclaim(self) -> bool:
        return self.confidence >= OVERCLAIM and not self.type

    @property
    def brier(self) -> float:
        return (self.confidence - self.type) ** 2

    @property
    def is_right(self) -> bool:
        """Nothing that the label tells was missed."""
        told = (self.type, self.sound, self.evidence, self.rank, self.host)
        return not self.error and all(each is not False for each in told)


def unanswered(case: Case, error: str) -> Score:
    """A case without a verdict is wrong in everything."""
    accepted = tuple(sorted(case.accepted))
    return Score(case.name, case.failure_type, accepted, error=error, evidence=False, misses=(error,))


def scored(case: Case, verdict: Verdict, seconds: float = 0.0) -> Score:
    """The score of a verdict on a case. Raises NothingReadable where its logs are gone."""
    body = verdict.verdict
    lines = JobLines(case.paths)
    accepted = case.accepted
    there = lines.at((each.file, each.line) for each in body.evidence)
    is_right = body.failure_type in accepted
    classes = {taxonomy()[name].failure_class for name in accepted}
    evidence = None
    if case.evidence and not case.is_healthy:
        first = [(each.file, each.line) for each in body.evidence[:CITED]]
        evidence = any(
            shows(label, place, there[place]) for label in case.evidence for place in first if place in there
        )
    rank = sorted(body.culprits.ranks) == list(case.culprit_ranks) if case.culprit_ranks else None
    host = _short(body.culprits.hosts) == _short(case.culprit_hosts) if case.culprit_hosts else None
    misses: list[str] = []
    if not is_right or evidence is False:
        places = {place for label in case.evidence for place in lines.labelled(label)}
        why = _why_other_lines if is_right else _why_another_type
        misses.append(why(case, verdict, places))
    if rank is False:
        misses.append(f"ranks {list(body.culprits.ranks)} instead of {list(case.culprit_ranks)}")
    if host is False:
        misses.append(f"hosts {list(body.culprits.hosts)} instead of {list(case.culprit_hosts)}")
    untrue = [
        f"{each.file}:{each.line}"
        for each in body.evidence
        if not _stands(each.text, there.get((each.file, each.line)))
    ]
    misses += [f"{place} does not say what is cited" for place in untrue]
    return Score(
        case=case.name,
        truth=case.failure_type,
        accepted=tuple(sorted(accepted)),
        got=body.failure_type,
        confidence=body.confidence,
        decided_by=body.decided_by,
        type=is_right,
        class_=body.failure_class in classes,
        sound=not untrue,
        evidence=evidence,
        rank=rank,
        host=host,
        alarm=not body.failure_type.startswith(("none.", "unknown")) if case.is_healthy else None,
        seconds=seconds,
        misses=tuple(misses),
    )


def _stands(cited: str, there: str | None) -> bool:
    shown = squeezed(cited.encode("utf-8", "replace"))
    return there is not None and bool(shown) and (shown[:_COMPARED] in there or there in shown)


def _short(hosts: Sequence[str]) -> set[str]:
    """By the first label: node-3.cluster.local and node-3 are one host; addresses stay whole."""
    return {host if host.replace(".", "").isdigit() else host.partition(".")[0].lower() for host in hosts}


def _why_another_type(case: Case, verdict: Verdict, places: set[Place]) -> str:
    """What the verdict knew of the true type, the most telling thing first."""
    body = verdict.verdict
    told = f"{body.failure_type} ({body.confidence:.2f})"
    if body.evidence:
        told += f" by {body.evidence[0].file}:{body.evidence[0].line}"
    other = next((each for each in body.alternatives if each.failure_type in case.accepted), None)
    if other is not None:
        return f"{told}; {other.failure_type} is an alternative ({other.confidence:.2f})"
    effect = next((each for each in verdict.symptoms if each.failure_type in case.accepted), None)
    if effect is not None:
        return f"{told}; {effect.failure_type} is taken for a consequence ({effect.file}:{effect.line})"
    if not case.evidence:
        return f"{told}; the label names no line"
    if not places:
        return f"{told}; the label's line is in no file that was read"
    known = [each for each in verdict.indications if (each.file, each.line) in places]
    if not known:
        file, line = min(places)
        return f"{told}; no rule knows the label's line {file}:{line}"
    seen = known[0]
    return f"{told}; the label's line {seen.file}:{seen.line} is read as {seen.role} of {seen.failure_type}"


def _why_other_lines(case: Case, verdict: Verdict, places: set[Place]) -> str:
    cited = [(each.file, each.line) for each in verdict.verdict.evidence]
    later = [number for number, place in enumerate(cited, 1) if place in places]
    if later:
        return f"the label's line is cited only as number {later[0]}"
    if not places:
        return "the label's line is in no file that was read"
    file, line = min(places)
    shown = ", ".join(f"{file}:{line}" for file, line in cited[:CITED]) or "nothing"
    return f"cites {shown}; the label's line is {file}:{line}"
