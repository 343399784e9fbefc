"""One rule run over logs, line by line: a shipped one, a learned one in any state, or one of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.folder import discover
from logtriage.intake.lines import plain, segments
from logtriage.intake.streams import StreamFault, pieces
from logtriage.memory.rule_folder import STATES, files_in_state
from logtriage.model import SourceRole
from logtriage.rulebank.bank import Bank, load_bank, read_rule_file
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Rule
from logtriage.settings import load_settings


@dataclass(frozen=True, slots=True)
class Tried:
    """One line that a tried rule matched, with what it captured."""

    file: str
    line: int
    text: str
    captures: tuple[tuple[str, str], ...]


def try_rule(rule: str, paths: str | Path | Sequence[str | Path]) -> Iterator[Tried]:
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
    matcher = Matcher(Bank(chosen, {}, ""))
    inventory = discover(paths)
    for source in inventory.sources:
        try:
            for piece in pieces(inventory.root, source):
                for number, raw in enumerate(piece.data.split(b"\n"), piece.first_line):
                    text = plain(raw)
                    for hit in matcher.match_segments(segments(text), SourceRole(source.role)):
                        yield Tried(source.file, number, text, hit.captures)
        except StreamFault:
            continue


def _all_rules() -> tuple[Rule, ...]:
    """Shipped rules and learned ones in any state."""
    data_dir = load_settings().data_dir
    return load_bank([file for state in STATES for file in files_in_state(data_dir, state)]).rules
