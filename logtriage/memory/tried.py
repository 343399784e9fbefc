"""One rule run over logs, line by line: a shipped one, a learned one in any state, or one of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtriage.intake.folder import discover
from logtriage.memory.rule_folder import STATES, files_in_state
from logtriage.memory.sightings import Sighting, sightings
from logtriage.rulebank.bank import Bank, load_bank, read_rule_file
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Rule
from logtriage.settings import load_settings


def try_rule(rule: str, paths: str | Path | Sequence[str | Path]) -> Iterator[Sighting]:
    """Run one rule (an id of the bank, or a rule file) over logs, line by line.

    Raises KeyError for an id that the bank lacks, BankFault for a broken file.
    """
    chosen = (
        read_rule_file(Path(rule))
        if Path(rule).is_file()
        else tuple(each for each in _all_rules() if each.id == rule)
    )
    if not chosen:
        raise KeyError(f"no rule {rule!r} in the bank, and no such file; see `logtriage rules list`")
    yield from sightings(Matcher(Bank(chosen, {}, "")), discover(paths))


def _all_rules() -> tuple[Rule, ...]:
    """Shipped rules and learned ones in any state."""
    data_dir = load_settings().data_dir
    return load_bank([file for state in STATES for file in files_in_state(data_dir, state)]).rules
