"""Which rules a line matches, and what they capture: linear in the line, whatever the bank's size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ahocorasick_rs import AhoCorasick, MatchKind

from logtriage.model import SourceRole
from logtriage.rulebank.bank import Bank, pattern_of
from logtriage.rulebank.blur import blur
from logtriage.rulebank.database import Databases, databases
from logtriage.rulebank.rule import WORD, Ratio, Role, Rule, Strength, literal
from logtriage.rulebank.vocabulary import Vocabulary, is_general, vocabulary
from logtriage.rulebank.wider import blurred_pattern

MOST_REMEMBERED = 20_000  # texts whose rules are remembered, …
LONGEST_REMEMBERED = 1_000  # … each up to so many characters
# Searches in vain for a rule on lines of one blur, after which it is asked whether it can match any of them.
MISSES = 6

_STRENGTH_ORDER = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}


@dataclass(frozen=True, slots=True)
class Hit:
    """One rule on one line; captures are the named groups that took part."""

    rule: Rule
    captures: tuple[tuple[str, str], ...]

    def capture(self, name: str) -> str | None:
        return next((value for key, value in self.captures if key == name), None)


@dataclass(frozen=True, slots=True)
class _Misses:
    """Of lines of one blur: how often each rule was searched for in vain, and which can match none of them.

    Rules are known by their place in the bank.
    """

    counts: Counter[int] = field(default_factory=Counter)
    vain: set[int] = field(default_factory=set)


class Matcher:
    """A bank made ready for matching: keywords first, then the few patterns whose keywords are there.

    One Aho-Corasick automaton over the keywords of all rules decides which patterns run at all (the
    design of gitleaks); a single google-re2 set of all patterns took 18 ms a line with 900 rules, since
    its automaton grows with every new kind of line. Digits are deleted from keywords and from lines,
    so that `called` can answer for all lines that differ in their digits alone.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        rules_of: dict[str, list[int]] = {}
        for index, rule in enumerate(bank.rules):
            for keyword in rule.keywords:
                rules_of.setdefault(without_digits(keyword).lower(), []).append(index)
        self._rules_of = list(rules_of.values())
        self._words = {place for place, keyword in enumerate(rules_of) if keyword.startswith(WORD)}
        # Lines come in few kinds: what a text calls is looked for once.
        self._called: dict[str, tuple[int, ...]] = {}
        self._misses: dict[bytes, _Misses] = {}  # by blur
        self._keywords = AhoCorasick(list(map(literal, rules_of)), matchkind=MatchKind.Standard)

    @cached_property
    def databases(self) -> Databases | None:
        """The bank's patterns for much data, compiled when they are first asked; None without Hyperscan."""
        return databases(self.bank)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the bank's messages by failure type; rules that match those of any type lend none."""
        return vocabulary([rule for rule in self.bank.rules if not is_general(rule)])

    def called(self, key: str) -> tuple[int, ...]:
        """The rules (by their place in the bank) whose keywords stand in this digit-less text."""
        known = self._called.get(key)
        if known is None:
            found = self._found(key)
            known = tuple(sorted({rule for keyword in found for rule in self._rules_of[keyword]}))
            if len(key) <= LONGEST_REMEMBERED:
                if len(self._called) >= MOST_REMEMBERED:
                    self._called.clear()
                self._called[key] = known
        return known

    def touches(self, key: str) -> bool:
        """Whether a line with this digit-less text could match a rule."""
        return bool(self.called(key))

    def _found(self, key: str) -> set[int]:
        lower = key.lower()
        hits = self._keywords.find_matches_as_indexes(lower, overlapping=True)
        return {
            place
            for place, start, stop in hits
            if place not in self._words
            or not (lower[start - 1 : start].isalpha() or lower[stop : stop + 1].isalpha())
        }

    def match(
        self, text: str, where: SourceRole | None = None, among: Collection[int] | None = None
    ) -> list[Hit]:
        """The hits on one piece of text, strongest first, at most one for each rule.

        A line that a `voids` rule knows to be harmless keeps only its context and progress hits; a
        rule that voids a phrase takes only the hits that overlap it. `among` are the only rules that are
        asked (by their place in the bank); without those that void, all hits are kept.
        """
        found: list[Hit] = []
        spans: list[tuple[int, int]] = []
        voided: list[tuple[int, int]] = []
        # Searching bytes spares google-re2's wrapper the counting of characters for each rule.
        raw = text.encode("utf-8", "replace")
        called = self.called(without_digits(text))
        misses = self._missed(raw) if called else _Misses()
        for index in called:
            rule = self.bank.rules[index]
            if index in misses.vain or (among is not None and index not in among):
                continue
            if rule.where and where is not None and where not in rule.where:
                continue
            match = found_in(raw, rule)
            if match is None:
                misses.counts[index] += 1
                if misses.counts[index] == MISSES and not _may_match_like(raw, rule):
                    misses.vain.add(index)
                continue
            if rule.voids:
                voided.append(match.span() if rule.voids == "phrase" else (0, len(raw)))
            spans.append(match.span())
            captures = tuple(
                (name, value.decode("utf-8", "replace"))
                for name, value in match.groupdict().items()
                if value is not None
            )
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

    def _missed(self, raw: bytes) -> _Misses:
        """What is known of searches on lines of this one's blur.

        Of a job's lines nearly all are of kinds that were seen before, and nine of ten searches are in vain.
        """
        if len(raw) > LONGEST_REMEMBERED or not raw.isascii():
            return _Misses()
        blurred = blur(raw)
        known = self._misses.get(blurred)
        if known is None:
            if len(self._misses) >= MOST_REMEMBERED:
                self._misses.clear()
            known = self._misses.setdefault(blurred, _Misses())
        return known

    def match_segments(
        self, parts: Sequence[str], where: SourceRole | None = None, among: Collection[int] | None = None
    ) -> list[Hit]:
        """The hits over all parts of one physical line, at most one for each rule and captures."""
        if len(parts) == 1:
            return self.match(parts[0], where, among)
        hits: dict[tuple[str, tuple[tuple[str, str], ...]], Hit] = {}
        for part in parts:
            for hit in self.match(part, where, among):
                hits.setdefault((hit.rule.id, hit.captures), hit)
        return list(hits.values())


def _may_match_like(raw: bytes, rule: Rule) -> bool:
    """Whether a rule may match a line of this one's blur. Where that cannot be told, it may."""
    return not raw.isascii() or pattern_of(blurred_pattern(rule.pattern)).search(blur(raw)) is not None


def found_in(text: str | bytes, rule: Rule) -> Any:
    """The match of a rule's pattern in a text, where its ratio holds as well; else None."""
    match: Any = pattern_of(rule.pattern).search(text)
    if match is None or rule.ratio is None:
        return match
    zero: Any = "0" if isinstance(text, str) else b"0"
    part, whole = ((match[name] or zero).lstrip(zero) for name in ("part", "whole"))
    return match if (part == whole) == (rule.ratio == Ratio.COMPLETE) else None


_DIGITS = b"0123456789"


def without_digits(text: str) -> str:
    # By way of bytes: fifteen times as fast as a pattern. Half a surrogate pair (JSON's "\ud800") is in no
    # keyword, and what looks for keywords takes none.
    return text.encode("utf-8", "replace").translate(None, _DIGITS).decode("utf-8")
