"""The patterns of a bank as one Hyperscan database: gigabytes are looked through in one go.

It only says near which bytes a rule *may* match. Patterns are compiled in a wider form (see `wider`), so
what it passes over cannot match, and what it reports is matched again by the `Matcher`. Without the package
`hyperscan` there is no database, and the keywords decide instead: the result is the same, only later.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from typing import Any

from logtriage.cache import cache_folder, keep, kept
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.rule import Role, Rule
from logtriage.rulebank.wider import wider


class PatternDatabase:
    """Patterns compiled together."""

    def __init__(self, compiled: Any) -> None:
        import hyperscan

        self._compiled = compiled
        self._compiled.scratch = hyperscan.Scratch(compiled)

    def ends(self, data: bytes, most: int) -> tuple[list[int], bool]:
        """Offsets behind what may be matches, in any order, with repeats; at most about `most` of them.

        Line ends are b"\\n", also for ^ and $. The second value tells whether all of `data` was read.
        """
        import hyperscan

        found: list[int] = []

        def note(pattern: int, start: int, stop: int, flags: int, context: object) -> bool:
            found.append(stop)
            return len(found) >= most

        try:
            self._compiled.scan(data, match_event_handler=note)
        except hyperscan.ScanTerminated:
            return found, False
        return found, True


def is_loud(rule: Rule) -> bool:
    """Whether each line counts that this rule matches; of the others the first and last are enough."""
    return rule.role in (Role.CAUSE, Role.SYMPTOM)


def databases(bank: Bank) -> tuple[PatternDatabase, ...]:
    """The causes and symptoms of the bank, compiled: none without the package `hyperscan`.

    One for the product's own rules (some seconds, unless it was compiled before) and one for further rules,
    so that one more rule of somebody's own costs no compiling of all the others.
    """
    if importlib.util.find_spec("hyperscan") is None:
        return ()
    own, further = bank.rules[: len(bank.rules) - bank.further], bank.rules[len(bank.rules) - bank.further :]
    parts = {
        name: [wider(rule).encode() for rule in rules if is_loud(rule)]
        for name, rules in (("patterns", own), ("further", further))
    }
    return tuple(_database(expressions, name) for name, expressions in parts.items() if expressions)


def _database(expressions: Sequence[bytes], name: str) -> PatternDatabase:
    """Kept under the user's cache folder; what another processor or version compiled is compiled anew."""
    import hyperscan

    made_of = repr((importlib.metadata.version("hyperscan"), expressions))
    path = cache_folder() / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.hs"
    try:
        return PatternDatabase(hyperscan.loadb(kept(path), hyperscan.HS_MODE_BLOCK))
    except (OSError, ValueError, hyperscan.error):
        pass
    compiled = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    flags = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_PREFILTER | hyperscan.HS_FLAG_ALLOWEMPTY
    compiled.compile(
        expressions=expressions,
        ids=list(range(len(expressions))),
        elements=len(expressions),
        flags=[flags] * len(expressions),
    )
    keep(path, hyperscan.dumpb(compiled))
    return PatternDatabase(compiled)
