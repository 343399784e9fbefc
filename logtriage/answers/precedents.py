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
    kind = _kind(verdict)
    seen: list[Earlier] = []
    hosts: dict[str, None] = {}
    looked = 0
    for kept in islice(kept_verdicts(settings.data_dir), MOST_LOOKED_AT):
        looked += 1
        if kept.verdict.id != verdict.id and _is_another_job(kept, verdict) and _kind(kept.verdict) == kind:
            seen.append(Earlier(kept.verdict.id, kept.verdict.job.name, when(kept)))
            now = verdict.verdict.culprits.hosts
            hosts |= dict.fromkeys(host for host in kept.verdict.verdict.culprits.hosts if host in now)
    return Precedents(tuple(seen), tuple(hosts), _diagnoses(verdict, settings), looked == MOST_LOOKED_AT)


def _kind(verdict: Verdict) -> tuple[str, str]:
    """The failure type and what shows it: jobs that agree in both failed in the same way."""
    body = verdict.verdict
    lead = body.evidence[0] if body.evidence else None
    return body.failure_type, (lead.rule or mask(lead.text[:400])) if lead is not None else ""


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
            if any(mask(cited.text[:400]) in lines for cited in each.evidence[:1])
        ]
        if not same and others and find_spec("chromadb") is not None:
            found = similar_diagnoses(lines, ledger, index_of(settings), MOST_DIAGNOSES)
            same = [(like, each) for like, each in found if like >= NEAR and each.verdict_id != verdict.id]
    except (LedgerFault, IndexFault, EmbeddingFault, OSError):
        return ()
    return tuple(same[:MOST_DIAGNOSES])
