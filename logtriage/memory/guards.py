"""What a learned rule must pass before it may be tried, all in code: nobody's word stands in for it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtriage.intake.folder import NothingReadable, discover
from logtriage.memory.evidence import Witness
from logtriage.memory.rule_folder import rule_text
from logtriage.memory.sightings import line_hits, sightings
from logtriage.memory.wording import Wording
from logtriage.mining.survey import survey
from logtriage.rulebank.bank import Bank, BankFault, read_rule_file
from logtriage.rulebank.check import lint
from logtriage.rulebank.matcher import Matcher, found_in
from logtriage.rulebank.rule import Role, Rule, Strength
from logtriage.taxonomy import shipped

MOST_HEALTHY = 20  # folders of healthy jobs that are read through …
HEALTHY_BYTES = 64 << 20  # … and bytes of them in all
LONGEST_PATTERN = 2_000


def shipped_healthy() -> tuple[str, ...]:
    folder = shipped("fixtures") / "completed-scary-words" / "logs"
    return (str(folder),) if folder.is_dir() else ()


def objection(
    rule: Rule, wording: Wording, witness: Witness, bank: Bank, healthy: Sequence[str]
) -> str | None:
    """The first reason why `rule` must not be learned from `witness`; None if there is none.

    `bank` holds all rules in force and on trial, `healthy` are folders of jobs that ended well.
    """
    return next(_objections(rule, wording, witness, bank, healthy), None)


def _objections(
    rule: Rule, wording: Wording, witness: Witness, bank: Bank, healthy: Sequence[str]
) -> Iterator[str]:
    if wording.fault is not None:
        yield wording.fault
    if len(rule.pattern) > LONGEST_PATTERN:
        yield "its pattern would be too long"
    yield from _faults_of_form(rule)
    if not matches_line(rule, witness):
        yield "it does not match its own line as rules see it"
    yield from _known_lines(rule, bank)
    if (folder := _healthy_match(rule, healthy)) is not None:
        yield f"it matches a line of a job that ended well: {folder}"


def _faults_of_form(rule: Rule) -> Iterator[str]:
    """As the loader sees it: a file of its own, a pattern of linear time, examples that it matches."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rule.yaml"
        file.write_bytes(rule_text(rule))
        try:
            loaded = read_rule_file(file)
        except BankFault as fault:
            yield fault.faults[0].message
            return
    for found in lint(loaded):
        if found.severity == "error":
            yield found.message
    for each in loaded:
        for example in each.examples:
            if found_in(example.line, each) is None:
                yield "it does not match its own example"


def matches_line(rule: Rule, witness: Witness) -> bool:
    """Whether the rule alone is hit by the line, through the same prefilter and segments as in a triage."""
    return bool(line_hits(Matcher(Bank((rule,), {}, "")), _raw(witness), witness.role))


def _raw(witness: Witness) -> bytes:
    return witness.cited.text.encode("utf-8", "surrogatepass")


def _known_lines(rule: Rule, bank: Bank) -> Iterator[str]:
    for other in bank.rules:
        if other.role in (Role.CAUSE, Role.SYMPTOM):
            if other.failure_type == rule.failure_type:
                continue
            if any(found_in(example.line, rule) is not None for example in other.examples):
                yield f"it matches an example of {other.id}, which is {other.failure_type}"
        elif any(found_in(example.line, rule) is not None for example in other.examples):
            yield f"it matches an example of {other.id}, which is no failure"
    own = [each for each in bank.rules if each.role is Role.CAUSE and each.failure_type == rule.failure_type]
    for other in bank.rules:
        for line in other.counterexamples:
            if found_in(line, rule) is None:
                continue
            if not any(found_in(line, each) is not None for each in own):
                yield f"it matches a line that is known to be harmless (a counterexample of {other.id})"


def _healthy_match(rule: Rule, healthy: Sequence[str]) -> str | None:
    matcher = Matcher(Bank((rule,), {}, ""))
    spent = 0
    for folder in dict.fromkeys((*shipped_healthy(), *healthy[:MOST_HEALTHY])):
        try:
            inventory = discover(folder)
        except (NothingReadable, OSError):
            continue  # cleared away since
        spent += sum(source.size for source in inventory.sources)
        if spent > HEALTHY_BYTES:
            break
        passed = survey(inventory.root, inventory.sources, matcher, workers=1)
        if not any(summary.hits for summary in passed.summaries):
            continue
        if not (rule.level or rule.beside) or any(sightings(matcher, inventory)):
            return folder
    return None


def known_already(witness: Witness, failure_type: str, matcher: Matcher) -> Rule | None:
    """The rule that is as sure of this line as a learned one would be, of the same type."""
    for hit in _cause_hits(witness, matcher):
        if hit.failure_type == failure_type and hit.strength is Strength.DEFINITE:
            return hit
    return None


def claimed_by(witness: Witness, failure_type: str, matcher: Matcher) -> Rule | None:
    """The shipped rule that is sure of another type for this line: it is that rule that needs repair."""
    for hit in _cause_hits(witness, matcher):
        if hit.failure_type != failure_type and hit.strength is Strength.DEFINITE and hit.provenance is None:
            return hit
    return None


def _cause_hits(witness: Witness, matcher: Matcher) -> Sequence[Rule]:
    hits = line_hits(matcher, _raw(witness), witness.role)
    return [hit.rule for hit in hits if hit.rule.role is Role.CAUSE]


def slug(words: Sequence[str]) -> str:
    """The words of a rule's id: lower-case letters of the language of ids."""
    found = [re.sub(r"[^a-z]", "", word.lower()) for word in words]
    return "-".join([word[:16] for word in found if len(word) > 2][:4]) or "line"
