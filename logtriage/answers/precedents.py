"""What this machine knows of earlier jobs that failed in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING

from logtriage.memory.rule_folder import has_memory
from logtriage.memory.verdicts import KeptVerdict, kept_verdicts, when
from logtriage.mining.masks import mask
from logtriage.report.document import Verdict
from logtriage.settings import Settings

if TYPE_CHECKING:
    from logtriage.memory.ledger import Diagnosis

MOST_LOOKED_AT = 400  # kept verdicts, the newest; each takes some milliseconds to read
MOST_DIAGNOSES = 3
LONGEST_LINE = 400  # characters of a line that are compared
NEAR = 0.8  # of likeness, as in the recall of verdicts


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier verdict of the same kind."""

    id: str
    job: str
    when: str


@dataclass(frozen=True, slots=True)
class Precedents:
    """Earlier verdicts of the same kind, newest first; confirmed diagnoses with their likeness, 0 to 1."""

    verdicts: tuple[Earlier, ...] = ()
    same_hosts: tuple[str, ...] = ()  # culprits then and now
    diagnoses: tuple[tuple[float, Diagnosis], ...] = ()
    is_bounded: bool = False  # there are older verdicts that were not looked at


def precedents_of(verdict: Verdict, settings: Settings) -> Precedents:
    """What was triaged or confirmed before and failed like this; a memory that fails counts as none."""
    body, marks = verdict.verdict, _marks(verdict)
    seen: list[Earlier] = []
    hosts: dict[str, None] = {}
    looked = 0
    for kept in islice(kept_verdicts(settings.data_dir), MOST_LOOKED_AT):
        looked += 1
        other = kept.verdict
        is_like = other.verdict.failure_type == body.failure_type and bool(_marks(other) & marks)
        if is_like and other.id != verdict.id and _is_another_job(kept, verdict):
            seen.append(Earlier(other.id, other.job.name, when(kept)))
            hosts |= {host: None for host in other.verdict.culprits.hosts if host in body.culprits.hosts}
    return Precedents(tuple(seen), tuple(hosts), _diagnoses(verdict, settings), looked == MOST_LOOKED_AT)


def _marks(verdict: Verdict) -> frozenset[str]:
    """What shows the failure: its rule, and the kind of its line, which stays when a rule is learned."""
    lead = verdict.verdict.evidence[0] if verdict.verdict.evidence else None
    if lead is None:
        return frozenset()
    return frozenset(filter(None, (lead.rule, mask(lead.text.strip()[:LONGEST_LINE]))))


def _is_another_job(kept: KeptVerdict, verdict: Verdict) -> bool:
    """The same logs get another id when they grow, or after an update."""
    return kept.verdict.job.paths != verdict.job.paths


def _diagnoses(verdict: Verdict, settings: Settings) -> tuple[tuple[float, Diagnosis], ...]:
    if not has_memory(settings):
        return ()
    from logtriage.memory.embedding import EmbeddingFault
    from logtriage.memory.incidents import IndexFault, index_of, similar_diagnoses, verdict_lines
    from logtriage.memory.ledger import LedgerFault, open_ledger

    try:
        ledger = open_ledger(settings.database_url, settings.data_dir)
        others = [each for each in ledger.diagnoses() if each.verdict_id != verdict.id]
        lines = verdict_lines(verdict)
        same = [
            (1.0, each)
            for each in others
            if any(mask(cited.text[:LONGEST_LINE]) in lines for cited in each.evidence[:1])
        ]
        if not same and others and find_spec("chromadb") is not None:
            found = similar_diagnoses(lines, ledger, index_of(settings), MOST_DIAGNOSES)
            same = [(like, each) for like, each in found if like >= NEAR and each.verdict_id != verdict.id]
    except (LedgerFault, IndexFault, EmbeddingFault, OSError):
        return ()
    return tuple(same[:MOST_DIAGNOSES])
