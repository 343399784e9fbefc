"""What was decided and on what grounds, before it becomes a document."""

from __future__ import annotations

from dataclasses import dataclass

from logtriage.localize.candidates import Candidate
from logtriage.model import Culprits, Evidence


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict's core; `symptoms` and `rivals` keep what was not taken for the cause."""

    failure_type: str
    title: str
    confidence: float
    culprits: Culprits
    evidence: tuple[Evidence, ...]
    decided_by: str  # rules | localisation | llm
    why: str
    outcome: str  # failed | completed | running | slow | unknown
    root: Candidate | None = None
    symptoms: tuple[Candidate, ...] = ()
    alternatives: tuple[tuple[str, float, tuple[Evidence, ...]], ...] = ()
    collect_next: tuple[str, ...] = ()
    attempt: int | None = None
