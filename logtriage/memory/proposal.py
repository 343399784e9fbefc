"""From a confirmed line to a rule that passes all guards, and to the say that it has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from logtriage.intake.folder import NothingReadable
from logtriage.memory.amounts import amounts
from logtriage.memory.discretion import without_secrets
from logtriage.memory.evidence import Witness
from logtriage.memory.guards import claimed_by, known_already, objection, slug
from logtriage.memory.ledger import Diagnosis
from logtriage.memory.own_job import own_job
from logtriage.memory.rule_folder import (
    ACTIVE,
    RETIRED,
    TRIAL,
    LearnedRule,
    file_name,
    files_in_state,
    learned_rules,
    rule_text,
    rules_dir,
)
from logtriage.memory.verdicts import KeptVerdict
from logtriage.memory.wording import Wording, bounded, patterns, vocabulary
from logtriage.model import Level, Line, SourceRole
from logtriage.report.document import Verdict
from logtriage.rulebank.bank import Bank, load_bank, pattern_of
from logtriage.rulebank.matcher import Matcher, found_in
from logtriage.rulebank.rule import Example, Mitigation, Provenance, Role, Rule, Strength, gravity

# Judges a job again with these learned rules in force: what the candidate would make of its own job.
Judge = Callable[[Sequence[str], Sequence[Path]], Verdict]

# What may be put down to another cause by a person's word. A hardware fault beside it is not explained away.
_FOLLOWS = (
    "collective.", "process.", "code.", "network.rendezvous", "network.connection", "scheduler.cancelled",
    "data.loader_worker",
)  # fmt: skip
# Files that only rules which name their role may accuse: a person who points into one knows better.
_NO_LOGS = (SourceRole.ENVIRONMENT, SourceRole.METRICS)
LONGEST_EXAMPLE = 600
MOST_EXAMPLES = 8


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule and the state that it earns, or none; `why` says what stands against more."""

    rule: Rule | None = None
    state: str = ""
    why: str = ""


def bank_with_learned(data_dir: Path) -> Bank:
    """The shipped rules and all learned ones that are in force or on trial."""
    return load_bank([*files_in_state(data_dir, ACTIVE), *files_in_state(data_dir, TRIAL)])


def propose(
    kept: KeptVerdict,
    diagnosis: Diagnosis,
    witness: Witness,
    *,
    is_named: bool,
    healthy: Sequence[str],
    data_dir: Path,
    judge: Judge,
) -> Proposal:
    """The rule that follows from a diagnosis and its line.

    `is_named`: the person named the line. `healthy` are folders of jobs that ended well.
    """
    bank = bank_with_learned(data_dir)
    matcher = Matcher(bank)
    failure_type = diagnosis.failure_type
    on_trial = {file.name for file in files_in_state(data_dir, TRIAL)}
    known = known_already(witness, failure_type, matcher)
    if known is not None and not (is_named and known.file in on_trial):  # a named line ends a trial
        return Proposal(why=f"the rule {known.id} knows this line already")
    if (claimed := claimed_by(witness, failure_type, matcher)) is not None:
        return Proposal(why=f"the shipped rule {claimed.id} is sure that this line is {claimed.failure_type}")
    near = _near(witness, failure_type, data_dir)
    rule, why, is_bounded = _guarded(kept, witness, diagnosis, bank, near, healthy)
    if rule is None:
        return Proposal(why=why)
    replaced = near.file if near is not None and near.rule.id == rule.id else None
    has_say = near is not None and near.rule.id == rule.id and near.state == ACTIVE
    # What its own job wrote while it was well set a bound to its amount, or it tells of a failure without.
    is_clear = witness.is_complaint or is_bounded or has_say
    sizes = () if is_clear else amounts(witness.message, _names(kept.verdict), vocabulary(bank))
    if sizes:
        told = ", ".join(sizes[:3])
        why = (
            f"the line is no complaint by itself, and only its amount ({told}) tells it from a calm one, "
            "which a rule leaves open; other confirmed jobs or `logtriage rules promote` give it a say"
        )
        return Proposal(rule, TRIAL, why)
    state, why = _state(rule, kept, witness, is_named, replaced, data_dir, judge)
    return Proposal(rule, state, why)


def _near(witness: Witness, failure_type: str, data_dir: Path) -> LearnedRule | None:
    """The learned rule of the same type whose example is the same sentence but for some words."""
    words = witness.message.split()
    for learned in learned_rules(data_dir):
        if learned.state == RETIRED or learned.rule.failure_type != failure_type:
            continue
        if learned.rule.beside and not set(learned.rule.beside) & set(witness.beside):
            continue  # another state
        for example in learned.rule.examples:
            theirs = example.line.split()
            same = sum(a == b for a, b in zip(words, theirs, strict=False))
            if len(theirs) == len(words) and same * 4 >= len(words) * 3:
                return learned
    return None


def _guarded(
    kept: KeptVerdict,
    witness: Witness,
    diagnosis: Diagnosis,
    bank: Bank,
    near: LearnedRule | None,
    healthy: Sequence[str],
) -> tuple[Rule | None, str, bool]:
    """The most general rule that passes all guards, or the reason why none does; and whether a bound was set
    to one of its counts.
    """
    names = _names(kept.verdict)
    known = vocabulary(bank)
    own = own_job(kept.paths, witness)
    why, survived = "it says nothing that a pattern could hold on to", ""
    olds = near.rule.examples if near is not None else ()
    others = Bank(tuple(each for each in bank.rules if near is None or each.id != near.rule.id), {}, "")
    # A rule's example goes where the rule goes; where a secret stood, the pattern has a wildcard.
    for message in map(without_secrets, witness.messages[:3]):
        alike = (*witness.alike, *(example.line for example in olds))
        for general in patterns(message, names=names, alike=alike, known=known):
            drafts = [general]
            while drafts:
                wording = drafts.pop(0)
                rule = _rule(wording, message, kept.verdict, witness, diagnosis, near)
                if near is not None and not all(found_in(each.line, rule) for each in olds):
                    near, olds = None, ()
                    others = bank
                    rule = _rule(wording, message, kept.verdict, witness, diagnosis, near)
                found = objection(rule, wording, witness, others, healthy)
                if found is None:
                    lived = own.survived(rule)
                    if not lived:
                        return rule, "", wording is not general
                    if wording is general:
                        drafts += bounded(general, [line.message for line in lived], message, known)
                    survived = _told(lived)
                else:
                    why = found
    return None, survived or why, False


def _told(lived: Sequence[Line]) -> str:
    more = f" and {len(lived) - 1} more" if len(lived) > 1 else ""
    place = f"{lived[0].file}:{lived[0].number}"
    return f"it also matches what this job wrote while it was well ({place}{more}), in whatever wording"


def _names(verdict: Verdict) -> tuple[str, ...]:
    cited = verdict.verdict.evidence
    hosts = [*verdict.job.hosts, *verdict.verdict.culprits.hosts, *(each.host for each in cited)]
    return tuple(dict.fromkeys(name for name in hosts if name and not name.isalpha()))


def _rule(
    wording: Wording,
    message: str,
    verdict: Verdict,
    witness: Witness,
    diagnosis: Diagnosis,
    near: LearnedRule | None,
) -> Rule:
    line = message[:LONGEST_EXAMPLE]
    found = pattern_of(wording.pattern).search(line)
    captures = (
        tuple((name, value) for name, value in sorted(found.groupdict().items()) if value)
        if found is not None
        else ()
    )
    olds = near.rule.examples if near is not None else ()
    kept_examples = [Example(each.line) for each in olds if each.line != line][: MOST_EXAMPLES - 1]
    beside = _states_beside(witness, near)
    named = "\0".join((diagnosis.failure_type, wording.pattern, *map("=".join, beside)))
    digest = hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:6]
    followed = {verdict.verdict.failure_type, *(each.failure_type for each in verdict.symptoms)}
    followed |= {each.failure_type for each in verdict.verdict.alternatives}
    followed |= set(near.rule.explains) if near is not None else set()
    lead = diagnosis.evidence[0]
    advice = [Mitigation(diagnosis.mitigation)] if diagnosis.mitigation else []
    advice += [each for each in (near.rule.mitigation if near is not None else ()) if each not in advice]
    kind = diagnosis.failure_type.replace(".", "-").replace("_", "-")
    return Rule(
        id=near.rule.id if near is not None else f"learned.{kind}.{slug(wording.content)}-{digest}",
        failure_type=diagnosis.failure_type,
        role=Role.CAUSE,
        strength=Strength.DEFINITE,
        title=wording.title,
        keywords=(wording.keyword,),
        pattern=wording.pattern,
        explains=tuple(
            sorted(name for name in followed if name.startswith(_FOLLOWS) and name != diagnosis.failure_type)
        ),
        mitigation=tuple(advice),
        examples=(Example(line, captures), *kept_examples),
        provenance=Provenance(
            verdict=verdict.id, by=diagnosis.author, at=diagnosis.at, evidence=f"{lead.file}:{lead.line}"
        ),
        where=tuple(SourceRole) if witness.role in _NO_LOGS else (),
        level=_least_level(witness.level, near),
        beside=beside,
        ratio=wording.ratio,
        outlived=witness.is_outlived or verdict.job.outcome == "completed",
    )


def _states_beside(witness: Witness, near: LearnedRule | None) -> tuple[tuple[str, str], ...]:
    """What all the jobs that taught the rule have in common."""
    return tuple(each for each in witness.beside if near is None or each in near.rule.beside)


def _least_level(level: Level | None, near: LearnedRule | None) -> Level | None:
    if level is None or near is None:
        return level
    return min(level, near.rule.level, key=gravity) if near.rule.level is not None else None


def _state(
    rule: Rule,
    kept: KeptVerdict,
    witness: Witness,
    is_named: bool,
    replaced: Path | None,
    data_dir: Path,
    judge: Judge,
) -> tuple[str, str]:
    """Whether the rule has a say at once, and if not, why."""
    if (rules_dir(data_dir) / RETIRED / file_name(rule.id)).exists():
        return TRIAL, "the same rule was retired before"
    if witness.is_routine and not is_named:
        return TRIAL, "lines like it stand all over this job's log"
    if not witness.is_clear:
        return TRIAL, "other lines could be meant; name the line with --evidence FILE:LINE"
    others = [file for file in files_in_state(data_dir, ACTIVE) if file != replaced]
    with TemporaryDirectory() as folder:
        candidate = Path(folder) / file_name(rule.id)
        candidate.write_bytes(rule_text(rule))
        try:
            again = judge(kept.paths, [*others, candidate])
        except (NothingReadable, OSError):
            return TRIAL, "the logs are not there any more, so it could not be tried on its own job"
    if again.verdict.failure_type != rule.failure_type:
        return TRIAL, f"with it in force this job would still be {again.verdict.failure_type}"
    return ACTIVE, ""
