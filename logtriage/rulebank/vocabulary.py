"""The words of the bank's own messages, by the failure type that they tell of.

Every rule brings a title, keywords and examples, so the bank is a collection of labelled messages. A line
that no rule matches can be held against it: the name of a library, a component or a fault says what it is
about. Rules that people add count as the shipped ones do.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.rulebank.rule import Role, Rule, Strength
from logtriage.taxonomy import taxonomy

_WORD = re.compile(r"[A-Za-z][a-z]{2,}|[A-Z]{3,}(?![a-z])")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z_]{5,}")
_ADDRESS = re.compile(r"\b[a-z]{2,8}://\S+")
_JOINED = re.compile(r"[a-z][A-Z]|_")
# By so much (nats) leads what a message is likened to (benchmarks/results/message-likeness.md).
LEAST_LEAD = 3.0
MEANING = 3  # rules that the taxonomy's own words for a type count for


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """By word the failure types whose rules have it, with its weight for each.

    The weight is the pointwise mutual information (Church and Hanks, 1990) of word and type over the rules of
    the bank; words that speak against a type, weighing less than nothing, are left out.
    """

    weights: dict[str, dict[str, float]]

    def scores(self, text: str) -> dict[str, float]:
        """By failure type, the weight of the words (two at least) that a text shares with its rules."""
        found: Counter[str] = Counter()
        scores: dict[str, float] = defaultdict(float)
        for word in sorted(_words(text)):
            for name, weight in self.weights.get(word, {}).items():
                scores[name] += weight
                found[name] += 1
        return {name: score for name, score in scores.items() if found[name] > 1}

    def likened(self, text: str) -> str | None:
        """The failure type whose rules a text shares most words with, if it is far before any other."""
        scores = self.scores(text)
        ranked = sorted(((score, name) for name, score in scores.items() if name != "unknown"), reverse=True)
        (score, name), (second, _) = [*ranked, (0.0, ""), (0.0, "")][:2]
        return name if score - second >= LEAST_LEAD else None


def vocabulary(rules: Sequence[Rule]) -> Vocabulary:
    """The words of keywords, titles and examples of the rules that state causes, and of the taxonomy."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    for rule in rules:
        if rule.failure_type is None or rule.role not in (Role.CAUSE, Role.SYMPTOM):
            continue
        sizes[rule.failure_type] += 1
        texts = (rule.title, *rule.keywords, *(example.line for example in rule.examples))
        for word in _words(" ".join(texts)):
            counts[word][rule.failure_type] += 1
    for name, kind in taxonomy().types.items():
        if not name.startswith("none."):
            sizes[name] += MEANING
            for word in _words(kind.means):
                counts[word][name] += MEANING
    total = sum(sizes.values())
    weights: dict[str, dict[str, float]] = {}
    for word, types in counts.items():
        share = sum(types.values()) / total
        told = {name: math.log((count + share) / (sizes[name] + 1) / share) for name, count in types.items()}
        weights[word] = {name: weight for name, weight in told.items() if weight > 0}
    return Vocabulary(weights)


def _words(text: str) -> set[str]:
    """Words in small letters; of identifiers the parts and the whole."""
    text = text[:4096]
    text = _ADDRESS.sub(" ", text)
    whole = (f"#{each.lower()}" for each in _IDENTIFIER.findall(text) if _JOINED.search(each))
    return {*(word.lower() for word in _WORD.findall(text)), *whole}


def is_general(rule: Rule) -> bool:
    """Whether a rule matches messages of any type, as that of Python's RuntimeError does."""
    return rule.failure_type == "code.runtime" and rule.strength is not Strength.DEFINITE
