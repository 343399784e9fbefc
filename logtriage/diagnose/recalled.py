"""What the memory says of an unsure verdict: confirmed diagnoses whose evidence is like this job's lines.

A learned rule is the sure way, and by now has had its say; likeness helps where a message was reworded. Of
labelled jobs the nearest other one at a likeness of 0.8 died of the same in about half of the cases
(benchmarks/results/embedding.md), and a verdict from memory claims no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from logtriage.diagnose.decision import Decision
from logtriage.localize.findings import Findings
from logtriage.memory.rule_folder import has_memory
from logtriage.model import Culprits, Evidence, Line
from logtriage.rulebank.matcher import Matcher
from logtriage.settings import Settings

if TYPE_CHECKING:
    from logtriage.memory.ledger import Diagnosis

UNSURE = 0.5  # a confidence below which the memory is asked
NEAR = 0.8
CLAIMED = 0.5
MOST_RECALLED = 3
_HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Recalled:
    """A confirmed diagnosis, the line of this job that resembles its evidence, and how much (0 to 1)."""

    line: Line
    likeness: float
    diagnosis: Diagnosis


def recalled(
    findings: Findings, decision: Decision, matcher: Matcher, settings: Settings, *, offline: bool
) -> tuple[Recalled, ...]:
    """The confirmed diagnoses nearest to an unsure job; none without a memory, or where it fails.

    With `offline` none either where a look-up would send the job's lines to another machine.
    """
    unsure = decision.failure_type == "unknown" or decision.confidence < UNSURE
    if not unsure or not has_memory(settings) or (offline and _is_elsewhere(settings)):
        return ()
    from logtriage.memory.embedding import EmbeddingFault
    from logtriage.memory.evidence import telling_lines
    from logtriage.memory.incidents import IndexFault, index_of, similar_diagnoses
    from logtriage.memory.ledger import LedgerFault, open_ledger

    lines = telling_lines(findings.scene.readings, matcher)
    try:
        ledger = open_ledger(settings.database_url, settings.data_dir)
        index = index_of(settings)
        found = [
            Recalled(line, likeness, each)
            for line in lines
            for likeness, each in similar_diagnoses([line.message], ledger, index, MOST_RECALLED)
        ]
    except (LedgerFault, IndexFault, EmbeddingFault, OSError):
        return ()  # the verdict stands without it; `logtriage similar` says what is wrong
    found.sort(key=lambda each: -each.likeness)
    return tuple({each.diagnosis.verdict_id: each for each in reversed(found)}.values())[::-1][:MOST_RECALLED]


def _is_elsewhere(settings: Settings) -> bool:
    """Whether likeness is told by a server that is not on this machine."""
    urls = [settings.chroma_url, settings.embedding_url if settings.embedding == "endpoint" else ""]
    try:
        hosts = [urlsplit(url if "://" in url else f"http://{url}").hostname for url in urls if url]
    except ValueError:
        return True  # no address that anybody could be asked at
    return any(host not in _HERE for host in hosts)


def with_memory(decision: Decision, recalls: Sequence[Recalled]) -> Decision:
    """The decision, or where the nearest diagnoses agree and are near enough, theirs."""
    near = [each for each in recalls if each.likeness >= NEAR]
    types = {each.diagnosis.failure_type for each in near}
    if len(types) != 1 or types.pop().startswith("none."):
        return decision
    best, said = near[0], near[0].diagnosis
    told = (
        f"like a line of {said.verdict_id}, which {said.author} called {said.failure_type} on {said.at[:10]}"
    )
    return replace(
        decision,
        failure_type=said.failure_type,
        title=best.line.message[:160],
        confidence=CLAIMED,
        culprits=Culprits(ranks=(best.line.rank,)) if best.line.rank is not None else decision.culprits,
        evidence=(Evidence(best.line, f"{best.likeness:.0%} {told}"),),
        decided_by="memory",
        why=f"it is {told}",
        outcome="failed",
        root=None,
    )
