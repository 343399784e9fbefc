"""What a line can be cited for: its rules say so, or its words are those of a failure type's rules."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from logtriage.agent.addressed import is_addressed
from logtriage.agent.desk import Desk, normal
from logtriage.intake.lines import segments
from logtriage.model import Level, Line
from logtriage.rulebank.rule import Role, Rule
from logtriage.taxonomy import taxonomy

_WORD = re.compile(r"[A-Za-z][a-z]{2,}|[A-Z]{3,}(?![a-z])")
WORDS_SCORE = 5.0  # what the shared words of a line and a type must weigh at least
NEAR_TOP = 0.8  # and of what the best type for this line weighs
END_LINES = 40  # a line that no rule knows must be an error, or stand so near the end of its file


class Bearing(IntEnum):
    """How well a line bears a claim, from not at all to by a rule that names this cause."""

    NOT = 0
    WORDS = 1
    SYMPTOM = 2  # a rule of this type saw a consequence or a survived error in it
    CAUSE = 3


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of the rules of each failure type, with their weight (rarer among types: heavier)."""

    types_of: dict[str, frozenset[str]]

    def scores(self, text: str) -> dict[str, float]:
        """By failure type, the weight of the words that a text shares with its rules."""
        found: Counter[str] = Counter()
        scores: dict[str, float] = defaultdict(float)
        total = max(2, len({name for names in self.types_of.values() for name in names}))
        for word in set(_words(text)):
            names = self.types_of.get(word, frozenset())
            for name in names:
                scores[name] += math.log(total / len(names))
                found[name] += 1
        return {name: score for name, score in scores.items() if found[name] > 1}


def vocabulary(rules: Sequence[Rule]) -> Vocabulary:
    """The words of keywords, titles and examples of the rules that state causes."""
    types_of: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        if rule.failure_type is None or rule.role not in (Role.CAUSE, Role.SYMPTOM):
            continue
        texts = (*rule.keywords, *(example.line for example in rule.examples))
        for word in _words(" ".join(texts)):
            types_of[word].add(rule.failure_type)
    for name, kind in taxonomy().types.items():
        if not name.startswith("none."):
            for word in _words(kind.means):
                types_of[word].add(name)
    return Vocabulary({word: frozenset(names) for word, names in types_of.items()})


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text[:4096])]


def bearing(line: Line, failure_type: str, desk: Desk, words: Vocabulary) -> Bearing:
    """How well a line bears the claim that this failure type ended the job."""
    text = normal(line.text)
    if not text or is_addressed(text):
        return Bearing.NOT
    told = [
        each
        for each in desk.findings.candidates
        if each.line.file == line.file and each.line.number == line.number
    ]
    for each in told:
        if each.failure_type == failure_type:
            return Bearing.CAUSE if each.role is Role.CAUSE and not each.recovered else Bearing.SYMPTOM
    if any(each.failure_type != "unknown" and each.rule is not None for each in told):
        return Bearing.NOT  # a rule knows this line, and it says something else
    hits = [hit for part in segments(text) for hit in desk.matcher.match(part)]
    if any(hit.rule.failure_type == failure_type for hit in hits):
        return Bearing.SYMPTOM
    if not (told or _is_error(line) or _is_near_end(line, desk)):
        return Bearing.NOT
    scores = words.scores(text)
    least = max(WORDS_SCORE, NEAR_TOP * max(scores.values(), default=0.0))
    return Bearing.WORDS if scores.get(failure_type, 0.0) >= least else Bearing.NOT


def _is_error(line: Line) -> bool:
    return line.level in (Level.WARNING, Level.ERROR, Level.CRITICAL)


def _is_near_end(line: Line, desk: Desk) -> bool:
    for reading in desk.findings.scene.readings:
        if reading.source.file == line.file and reading.lines:
            return line.number > reading.lines[-1].number - END_LINES
    return False
