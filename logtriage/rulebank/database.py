"""The patterns of a bank as Hyperscan databases: gigabytes are looked through in one go.

They only say near which bytes a rule *may* match. Patterns are compiled in a wider form (see `wider`), so
what they pass over cannot match, and what they report is matched again by the `Matcher`. One is for blurs:
what it passes over cannot match any line of that blur. The other is for the lines of the blurs that are
left. Without the package `hyperscan` there are none, and the keywords decide instead: the result is the
same, only later.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logtriage.cache import cache_folder, keep, kept
from logtriage.rulebank.bank import Bank, pattern_of
from logtriage.rulebank.blur import blur
from logtriage.rulebank.rule import Role, Rule
from logtriage.rulebank.wider import blurred_pattern, wider

# Whose text makes expressions of rules: with another version of them, kept databases are not used.
_MAKERS = ("blur.py", "database.py", "wider.py")


class PatternDatabase:
    """The patterns of rules, compiled together when they are first asked.

    Kept under the user's cache folder; what another processor or version compiled is compiled anew.
    """

    def __init__(self, name: str, rules: Sequence[Rule], *, on_blurs: bool = False) -> None:
        self._name = name
        self._rules = rules
        self._on_blurs = on_blurs

    @functools.cached_property
    def compiled(self) -> Any:
        import hyperscan

        compiled = self._kept_or_made()
        compiled.scratch = hyperscan.Scratch(compiled)
        return compiled

    @functools.cached_property
    def path(self) -> Path:
        """Where it is kept, once it was compiled."""
        from importlib.metadata import version  # which loads the reader of mail with it

        asked = [(rule.pattern, rule.keywords) for rule in self._rules]
        makers = [Path(__file__).with_name(name).read_bytes() for name in _MAKERS]
        made_of = repr((version("hyperscan"), makers, asked)).encode()
        return cache_folder() / f"{self._name}-{hashlib.sha256(made_of).hexdigest()[:12]}.hs"

    def _kept_or_made(self) -> Any:
        import hyperscan

        try:
            return hyperscan.loadb(kept(self.path), hyperscan.HS_MODE_BLOCK)
        except (OSError, ValueError, hyperscan.error):
            pass
        compiled = self._made(frozenset())
        if missed := self._missed(compiled):
            compiled = self._made(missed)
        keep(self.path, hyperscan.dumpb(compiled))
        return compiled

    def _made(self, by_keywords: Collection[int]) -> Any:
        """Compiled anew, some rules by their keywords alone."""
        import hyperscan

        expressions = [
            wider(rule, on_blurs=self._on_blurs, by_keywords=index in by_keywords).encode()
            for index, rule in enumerate(self._rules)
        ]
        compiled = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        flags = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_PREFILTER | hyperscan.HS_FLAG_ALLOWEMPTY
        compiled.compile(
            expressions=expressions,
            ids=list(range(len(expressions))),
            elements=len(expressions),
            flags=[flags] * len(expressions),
        )
        return compiled

    def _missed(self, compiled: Any) -> set[int]:
        """The rules whose own examples are not found wherever they stand.

        Of a few patterns with repeats Vectorscan 5.4.12 finds the first match alone, or none behind certain
        other lines; alone in a line it finds them all.
        """
        import hyperscan

        compiled.scratch = hyperscan.Scratch(compiled)

        def note(pattern: int, start: int, stop: int, flags: int, context: Any) -> None:
            asked, found = context
            if pattern == asked:
                found.append(stop)

        missed = set()
        for index, rule in enumerate(self._rules):
            for example in rule.examples:
                line = example.line.replace("\r", "\n").encode()
                line = (blur(line) if self._on_blurs else line) + b"\n"
                for before in (b"", line, line * 2, b"x " + line):
                    found: list[int] = []
                    compiled.scan(before + line, match_event_handler=note, context=(index, found))
                    if not any(stop > len(before) for stop in found):
                        missed.add(index)
        return missed

    def may_match(self, line: bytes, *, in_full: bool = True) -> bool:
        """Whether a rule matches a line, or a part of it between carriage returns; of a blur, whether it may.

        Patterns that Hyperscan names are asked once more `in_full`: a keyword of a long one is soon met.
        """

        def note(pattern: int, start: int, stop: int, flags: int, named: set[int]) -> None:
            named.add(pattern)

        for part in line.split(b"\r"):
            named: set[int] = set()
            self.compiled.scan(part, match_event_handler=note, context=named)
            if named and not in_full:
                return True
            if any(self._full(self._rules[index].pattern).search(part) for index in named):
                return True
        return False

    def _full(self, pattern: str) -> Any:
        return pattern_of(blurred_pattern(pattern) if self._on_blurs else pattern)

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
            self.compiled.scan(data, match_event_handler=note)
        except hyperscan.ScanTerminated:
            return found, False
        return found, True


def is_loud(rule: Rule) -> bool:
    """Whether each line counts that this rule matches; of the others the first and last are enough."""
    return rule.role in (Role.CAUSE, Role.SYMPTOM)


@dataclass(frozen=True, slots=True)
class Patterns:
    """The same rules for blurs and for lines as they stand."""

    blurs: PatternDatabase
    lines: PatternDatabase


@dataclass(frozen=True, slots=True)
class Databases:
    """Causes and symptoms; and what marks progress and is neither.

    The product's own rules stand apart from further ones, so that one more rule of somebody's own costs no
    compiling of all the others (some seconds, unless it was done before).
    """

    loud: tuple[Patterns, ...]
    progress: tuple[Patterns, ...]

    def compile(self) -> None:
        """Make them ready, and keep them for other processes."""
        for database in self._all():
            _ = database.compiled

    def are_kept(self) -> bool:
        """Whether they were compiled before, so that it costs little to use them."""
        return all(database.path.exists() for database in self._all())

    def _all(self) -> Iterator[PatternDatabase]:
        for each in (*self.loud, *self.progress):
            yield from (each.blurs, each.lines)


def is_progress(rule: Rule) -> bool:
    """Whether a rule only marks how far something came."""
    return rule.marks is not None and not is_loud(rule)


def databases(bank: Bank) -> Databases | None:
    """The patterns of a bank; None without the package `hyperscan`."""
    if importlib.util.find_spec("hyperscan") is None:
        return None
    own, further = bank.rules[: len(bank.rules) - bank.further], bank.rules[len(bank.rules) - bank.further :]

    def patterns(name: str, asked: Callable[[Rule], bool]) -> tuple[Patterns, ...]:
        parts = ((name, own), (f"further_{name}", further))
        chosen = [(part, [rule for rule in rules if asked(rule)]) for part, rules in parts]
        return tuple(
            Patterns(PatternDatabase(f"blurred_{part}", rules, on_blurs=True), PatternDatabase(part, rules))
            for part, rules in chosen
            if rules
        )

    return Databases(patterns("patterns", is_loud), patterns("progress", is_progress))
