"""One confirmed diagnosis: into the ledger first, then what follows for the learned rules.

A rule that is learned has a say at once where a person pointed at its line, or agreed to the line that the
verdict showed, all guards hold, and the rule names the job that it comes from; otherwise it stays on trial
until other confirmed jobs agree with it. Later confirmations that contradict a rule retire it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from logtriage.intake.folder import NothingReadable
from logtriage.memory.changed import logs_now
from logtriage.memory.changes import bank_name, finish_changes, image, locked, make_changes, moved
from logtriage.memory.discretion import discreet
from logtriage.memory.evidence import (
    EvidenceFault,
    Witness,
    cited_witness,
    picked,
    witness_at,
)
from logtriage.memory.guards import claimed_by, matches_line
from logtriage.memory.ledger import Change, Cited, Diagnosis, Ledger, Vote, now
from logtriage.memory.proposal import LONGEST_EXAMPLE, Judge, Proposal, bank_with_learned, propose
from logtriage.memory.rule_folder import (
    ACTIVE,
    RETIRED,
    TRIAL,
    file_name,
    learned_rules,
    rule_text,
    rules_dir,
)
from logtriage.memory.verdicts import KeptVerdict, kept_verdicts
from logtriage.report.document import Verdict
from logtriage.report.words import type_name
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Rule

_NEVER_STATED = ("none.", "unknown")
_SELDOM_STATED = ("hang.", "slow.")  # found by comparing ranks, or by silence
LONGEST_TITLE = 160
LONGEST_MITIGATION = 2000
AGREEMENTS_A_CONTRADICTION = 3  # so many agreeing jobs outweigh one that contradicts


@dataclass(frozen=True, slots=True)
class Lesson:
    """What came of one confirmation; `why` says why there is no rule, or why it has no say yet."""

    diagnosis: Diagnosis
    rule: Rule | None = None
    state: str = ""  # trial | active
    why: str = ""
    witness: Witness | None = None
    changes: tuple[Change, ...] = ()  # to all learned rules
    changed_since: tuple[str, ...] = ()  # logs that were written to after the verdict was given


@dataclass(frozen=True, slots=True)
class Word:
    """What a person said: the type, and optionally the line (FILE:LINE) and what helped."""

    failure_type: str
    author: str
    evidence: str = ""
    mitigation: str = ""


def learn(
    kept: KeptVerdict, word: Word, ledger: Ledger, data_dir: Path, judge: Judge, *, promote_after: int = 2
) -> Lesson:
    """Write a person's word on a verdict into the ledger, and learn from it what the guards let through.

    Raises EvidenceFault where the line that the person names cannot be had, or the one that the verdict
    rests on reads otherwise now (nothing is written then), and LedgerFault.
    """
    bank = bank_with_learned(data_dir)
    now_there = logs_now(kept)
    now_there.hold(word.evidence)
    witness = _witness(kept, word, Matcher(bank))
    diagnosis = ledger.add(_diagnosis(kept, word, witness))
    with locked(data_dir):
        finish_changes(ledger, data_dir)
        changes = _settle_votes(kept, diagnosis, witness, ledger, data_dir, promote_after)
        healthy = healthy_folders(ledger, data_dir)
        proposal = _proposal(kept, diagnosis, witness, bool(word.evidence), healthy, data_dir, judge)
        if proposal.rule is not None:
            change = _change(proposal.rule, proposal.state, diagnosis, data_dir)
            changes += make_changes([change], ledger, data_dir)
            ledger.vote([Vote(proposal.rule.id, diagnosis.verdict_id, True)])
    told = diagnosis, proposal.rule, proposal.state, proposal.why, witness, tuple(changes)
    return Lesson(*told, now_there.changed)


def _witness(kept: KeptVerdict, word: Word, matcher: Matcher) -> Witness | None:
    if word.evidence:
        try:
            return witness_at(kept.paths, word.evidence, matcher)
        except NothingReadable:
            known = _cited_lines(kept.verdict).get(word.evidence)
            if known is None:
                raise EvidenceFault(
                    "the logs are not there any more, and the verdict does not cite that line"
                ) from None
            file, _, number = word.evidence.rpartition(":")
            return cited_witness(known, file, int(number))
    if word.failure_type.startswith((*_NEVER_STATED, *_SELDOM_STATED)):
        return None
    shown = _shown(kept, matcher)
    if shown is not None and claimed_by(shown, word.failure_type, matcher) is None:
        return shown
    with suppress(NothingReadable):
        return picked(kept.paths, matcher) or shown
    return shown


def _shown(kept: KeptVerdict, matcher: Matcher) -> Witness | None:
    """The line that the verdict rests on, where it accuses one: a last step or a last word accuses nobody."""
    body = kept.verdict.verdict
    if not body.evidence or body.failure_type.startswith((*_NEVER_STATED, *_SELDOM_STATED)):
        return None
    lead = body.evidence[0]
    with suppress(EvidenceFault, NothingReadable):
        return witness_at(kept.paths, f"{lead.file}:{lead.line}", matcher)
    return cited_witness(lead.text, lead.file, lead.line)


def _cited_lines(verdict: Verdict) -> dict[str, str]:
    cited = [
        *verdict.verdict.evidence,
        *(each for other in verdict.verdict.alternatives for each in other.evidence),
    ]
    return {f"{each.file}:{each.line}": each.text for each in cited}


def _diagnosis(kept: KeptVerdict, word: Word, witness: Witness | None) -> Diagnosis:
    verdict = kept.verdict
    agreed = word.failure_type == verdict.verdict.failure_type
    shown = [Cited(each.file, each.line, each.text) for each in verdict.verdict.evidence[:4]]
    own = [witness.cited] if witness is not None else []
    # What a wrong verdict rested on is no evidence of what it really was.
    more = [each for each in shown if not own or (each.file, each.line) != (own[0].file, own[0].line)]
    supports = agreed or (not own and verdict.verdict.failure_type == "unknown")
    cited = own + more if supports else own
    name = type_name(word.failure_type)
    title = verdict.verdict.title if agreed else witness.message if witness is not None else name
    whole = Diagnosis(
        verdict_id=verdict.id,
        failure_type=word.failure_type,
        told=verdict.verdict.failure_type,
        author=word.author,
        at=now(),
        title=title,
        evidence=tuple(cited),
        context={
            "job": verdict.job.name,
            "frameworks": list(verdict.job.frameworks),
            "ranks": verdict.job.ranks,
            "hosts": list(verdict.job.hosts[:16]),
            "symptoms": sorted({each.failure_type for each in verdict.symptoms}),
            "culprits": verdict.verdict.culprits.model_dump(mode="json"),
        },
        mitigation=word.mitigation,
    )
    # Cut after that: the head of a key is no longer known as one.
    hidden = discreet(whole)
    short = tuple(replace(each, text=each.text[:LONGEST_EXAMPLE]) for each in hidden.evidence)
    named, helped = _shortened(hidden.title), hidden.mitigation[:LONGEST_MITIGATION]
    return replace(hidden, title=named, mitigation=helped, evidence=short)


def _shortened(title: str) -> str:
    if len(title) <= LONGEST_TITLE:
        return title
    return title[: LONGEST_TITLE - 2].rsplit(" ", 1)[0] + " …"


def _settle_votes(
    kept: KeptVerdict,
    diagnosis: Diagnosis,
    witness: Witness | None,
    ledger: Ledger,
    data_dir: Path,
    promote_after: int,
) -> list[Change]:
    """Let the job vote on the learned rules that matched it: promotes and retires."""
    changes: list[Change] = []
    for learned in learned_rules(data_dir):
        rule = learned.rule
        if learned.state == RETIRED or not _spoke(rule, learned.state, kept.verdict, witness):
            continue
        agrees = rule.failure_type == diagnosis.failure_type
        ledger.vote([Vote(rule.id, diagnosis.verdict_id, agrees)])
        agreeing, against = ledger.votes(rule.id)
        if not agrees and against * AGREEMENTS_A_CONTRADICTION >= agreeing:
            reason = f"verdict {diagnosis.verdict_id} was {diagnosis.failure_type}, not {rule.failure_type}"
            changes.append(moved(learned, RETIRED, diagnosis.author, reason, data_dir, diagnosis.id))
        elif agrees and learned.state == TRIAL and agreeing >= promote_after and not against:
            reason = f"{agreeing} confirmed jobs agree"
            changes.append(moved(learned, ACTIVE, diagnosis.author, reason, data_dir, diagnosis.id))
    return make_changes(changes, ledger, data_dir) if changes else []


def _spoke(rule: Rule, state: str, verdict: Verdict, witness: Witness | None) -> bool:
    """Whether the rule named the root cause of this job, or would have, had it had a say."""
    if state == TRIAL and rule.id in verdict.mining.trial_rules:
        return True
    lead = verdict.verdict.evidence[0] if verdict.verdict.evidence else None
    if lead is not None and lead.rule == rule.id:
        return True
    return witness is not None and matches_line(rule, witness)


def _proposal(
    kept: KeptVerdict,
    diagnosis: Diagnosis,
    witness: Witness | None,
    is_named: bool,
    healthy: Sequence[str],
    data_dir: Path,
    judge: Judge,
) -> Proposal:
    failure_type = diagnosis.failure_type
    seldom = failure_type.startswith(_SELDOM_STATED) and not is_named
    if failure_type == "unknown":
        return Proposal(why="nobody knows the cause; learned rules that named one have this job against them")
    if seldom or failure_type.startswith(_NEVER_STATED):
        return Proposal(why=f"no line states {failure_type}, so no rule follows from it")
    if witness is None:
        return Proposal(why="no line stands out; name it with --evidence FILE:LINE")
    return propose(
        kept, diagnosis, witness, is_named=is_named, healthy=healthy, data_dir=data_dir, judge=judge
    )


SURELY_HEALTHY = 0.8  # confidence from which a verdict `none.completed` counts though nobody confirmed it


def healthy_folders(ledger: Ledger, data_dir: Path) -> list[str]:
    """Paths of jobs that ended well, newest first: by a person's word, else by a sure verdict.

    A job that merely seems to be running may be one that died of what no rule knows yet.
    """
    said: dict[str, str] = {}
    for diagnosis in ledger.diagnoses():
        said.setdefault(diagnosis.verdict_id, diagnosis.failure_type)
    found = []
    for kept in kept_verdicts(data_dir):
        body = kept.verdict.verdict
        sure = body.failure_type == "none.completed" and body.confidence >= SURELY_HEALTHY
        told = said.get(kept.verdict.id, body.failure_type if sure else "")
        if told.startswith("none."):
            found += [path for path in kept.paths if path != "-"]
    return found


def _change(rule: Rule, state: str, diagnosis: Diagnosis, data_dir: Path) -> Change:
    name = file_name(rule.id)
    before = next(
        (
            image(file, data_dir)
            for state in (ACTIVE, TRIAL, RETIRED)
            if (file := rules_dir(data_dir) / state / name).exists()
        ),
        None,
    )
    return Change(
        rule=rule.id,
        action=_action(before, state),
        author=diagnosis.author,
        at=diagnosis.at,
        reason=f"{diagnosis.failure_type} by {diagnosis.author}, {rule.provenance.evidence}"
        if rule.provenance
        else "",
        bank=bank_name(data_dir),
        before=before,
        after=(f"{state}/{name}", rule_text(rule)),
        diagnosis=diagnosis.id,
    )


def _action(before: tuple[str, bytes] | None, state: str) -> str:
    if before is None or before[0].startswith(RETIRED):
        return "learned"
    return "promoted" if state == ACTIVE and before[0].startswith(TRIAL) else "generalised"
