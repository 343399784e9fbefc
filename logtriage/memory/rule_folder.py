"""The folder of learned rules: one file a rule, its state the folder that it lies in.

`trial/` (hits are counted, no say), `active/` (as good as a shipped rule) and `retired/`. The folder may be
a git repository and be shared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logtriage.memory.sightings import line_hits
from logtriage.mining.summary import Summary
from logtriage.rulebank.bank import Bank, BankFault, read_rule_file
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Rule
from logtriage.settings import Settings

TRIAL, ACTIVE, RETIRED = "trial", "active", "retired"
STATES = (TRIAL, ACTIVE, RETIRED)


@dataclass(frozen=True, slots=True)
class LearnedRule:
    rule: Rule
    state: str
    file: Path


def has_memory(settings: Settings) -> bool:
    """Whether anything can have been confirmed here, told without opening a database."""
    try:
        return bool(settings.database_url) or (settings.data_dir / "ledger.sqlite3").exists()
    except OSError:  # a folder that this user may not enter
        return False


def rules_dir(data_dir: Path) -> Path:
    return data_dir / "rules"


def files_in_state(data_dir: Path, state: str) -> list[Path]:
    """The rule files of one state, in a stable order; cheap, for every triage."""
    try:
        return sorted((rules_dir(data_dir) / state).glob("*.yaml"))
    except OSError:
        return []


def unreadable_rules(data_dir: Path) -> list[tuple[Path, str]]:
    """The files of learned rules that cannot be used, each with what is wrong with it."""
    found = []
    for state in STATES:
        for file in files_in_state(data_dir, state):
            try:
                read_rule_file(file)
            except (BankFault, OSError) as fault:
                found.append((file, " ".join(str(fault).split())))
    return found


def learned_rules(data_dir: Path, states: Sequence[str] = STATES) -> list[LearnedRule]:
    """All learned rules (in these states) that can be read; a triage names the files that cannot."""
    found = []
    for state in states:
        for file in files_in_state(data_dir, state):
            with suppress(BankFault):
                found += [LearnedRule(rule, state, file) for rule in read_rule_file(file)]
    return found


def file_name(rule_id: str) -> str:
    return re.sub(r"[^a-z0-9_.-]", "_", rule_id) + ".yaml"


def rule_text(rule: Rule) -> bytes:
    """A learned rule as its file holds it."""
    assert rule.provenance is not None
    entry: dict[str, object] = {
        "id": rule.id,
        "failure_type": rule.failure_type,
        "role": rule.role.value,
        "strength": rule.strength.value,
        "title": rule.title,
        "keywords": list(rule.keywords),
        "pattern": rule.pattern,
    }
    if rule.level:
        entry["level"] = rule.level.value
    if rule.ratio:
        entry["ratio"] = rule.ratio.value
    if rule.beside:
        entry["beside"] = dict(rule.beside)
    if rule.outlived:
        entry["outlived"] = True
    if rule.where:
        entry["where"] = [each.value for each in rule.where]
    if rule.explains:
        entry["explains"] = list(rule.explains)
    if rule.mitigation:
        entry["mitigation"] = [each.text for each in rule.mitigation]
    entry["examples"] = [
        {"line": each.line, "captures": dict(each.captures)} if each.captures else {"line": each.line}
        for each in rule.examples
    ]
    come_from = rule.provenance
    entry["provenance"] = {
        "verdict": come_from.verdict,
        "by": come_from.by,
        "at": come_from.at,
        "evidence": come_from.evidence,
    }
    import yaml

    text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=110)
    return text.encode("utf-8", "replace")


def trial_sightings(data_dir: Path, summaries: Sequence[Summary]) -> dict[str, int]:
    """How many lines of a job each rule on trial matches; of each kind of line one is looked at."""
    on_trial = tuple(each.rule for each in learned_rules(data_dir, [TRIAL]))
    if not on_trial:
        return {}
    matcher = Matcher(Bank(on_trial, {}, ""))
    seen: Counter[str] = Counter()
    for summary in summaries:
        for count in summary.keys.values():
            for hit in line_hits(matcher, count.sample):
                seen[hit.rule.id] += count.count
    return dict(sorted(seen.items()))
