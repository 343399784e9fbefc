"""Which rules a line matches, and what they capture: linear in the line, whatever the bank's size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import re2

from logtriage.model import SourceRole
from logtriage.rulebank.bank import Bank, pattern_of, rule_options
from logtriage.rulebank.rule import Role, Rule, Strength

_STRENGTH_ORDER = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}


@dataclass(frozen=True, slots=True)
class Hit:
    """One rule on one line; captures are the named groups that took part."""

    rule: Rule
    captures: tuple[tuple[str, str], ...]

    def capture(self, name: str) -> str | None:
        return next((value for key, value in self.captures if key == name), None)


class Matcher:
    """A bank made ready for matching.

    All patterns are tried at once by a google-re2 set; only those that matched are run again for
    their captures. `touches` answers for a line whose digits were deleted whether any line that
    differs from it in digits alone could match a rule.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self._patterns = re2.Set.SearchSet(rule_options())
        for rule in bank.rules:
            self._patterns.Add(rule.pattern)
        self._patterns.Compile()
        literals = {digitless for rule in bank.rules for digitless in map(without_digits, rule.keywords)}
        self._literals = re2.Set.SearchSet(rule_options())
        for literal in sorted(literals):
            self._literals.Add("(?i)" + re2.escape(literal))
        self._literals.Compile()

    def touches(self, key: str) -> bool:
        """Whether a line with this digit-less text could match a rule."""
        return bool(self._literals.Match(key))

    def match(self, text: str, where: SourceRole | None = None) -> list[Hit]:
        """The hits on one piece of text, strongest first, at most one for each rule.

        A line that a `voids` rule knows to be harmless keeps only its context and progress hits; a
        rule that voids a phrase takes only the hits that overlap it.
        """
        found: list[Hit] = []
        spans: list[tuple[int, int]] = []
        voided: list[tuple[int, int]] = []
        for index in self._patterns.Match(text) or ():  # None where nothing matches
            rule = self.bank.rules[index]
            if rule.where and where is not None and where not in rule.where:
                continue
            match: Any = pattern_of(rule.pattern).search(text)
            if match is None:
                continue
            if rule.voids:
                voided.append(match.span() if rule.voids == "phrase" else (0, len(text)))
            spans.append(match.span())
            captures = tuple((name, value) for name, value in match.groupdict().items() if value is not None)
            found.append(Hit(rule, captures))
        if voided:
            found = [
                hit
                for hit, (start, stop) in zip(found, spans, strict=True)
                if hit.rule.role in (Role.CONTEXT, Role.PROGRESS)
                or not any(start < end and begin < stop for begin, end in voided)
            ]
        found.sort(key=lambda hit: (_STRENGTH_ORDER[hit.rule.strength], hit.rule.id))
        return found

    def match_segments(self, parts: Sequence[str], where: SourceRole | None = None) -> list[Hit]:
        """The hits over all parts of one physical line, at most one for each rule and captures."""
        if len(parts) == 1:
            return self.match(parts[0], where)
        hits: dict[tuple[str, tuple[tuple[str, str], ...]], Hit] = {}
        for part in parts:
            for hit in self.match(part, where):
                hits.setdefault((hit.rule.id, hit.captures), hit)
        return list(hits.values())


_DIGITS = re.compile(r"[0-9]+")


def without_digits(text: str) -> str:
    return _DIGITS.sub("", text)
