"""What a line can be cited for: its rules say so, or its words are those of a failure type's rules."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import IntEnum

from logtriage.agent.addressed import is_addressed
from logtriage.agent.desk import Desk, normal
from logtriage.agent.routine import is_error_like, masked
from logtriage.intake.lines import segments
from logtriage.localize.candidates import Candidate
from logtriage.model import Level, Line, SourceRole
from logtriage.rulebank.rule import Role, Rule, Strength
from logtriage.rulebank.vocabulary import Vocabulary

# What the words that a line shares with a type must weigh, alone and beside those it shares with any other
# type. The less a line is known to tell of a failure, the more its words have to. Set by
# benchmarks/truth_and_lies.py, so that a liar turns no verdict.
WORDS_SCORE, NEAR_TOP = 4.0, 0.9  # an exception whose class tells something
BARE_MARGIN, BARE_LEAD = 1.4, 5.0  # a RuntimeError: so many times as much, or so much more
LOUD_SCORE, LOUD_MARGIN = 7.5, 1.2  # no exception, but told as an error
CALM_SCORE = 10.0  # only words such as `failed`
HINT_MARGIN = 1.5  # a rule takes the line for a hint at another type
END_LINES = 40  # a line that no rule knows must be an error, or stand so near the end of its file …
RARE = 3  # … and no more often in it


class Bearing(IntEnum):
    """How well a line bears a claim, from not at all to by a rule that names this cause."""

    NOT = 0
    WORDS = 1
    SYMPTOM = 2  # a rule of this type saw a consequence or a survived error in it
    CAUSE = 3


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
    if not all(each.rule is None or _says_little(each.rule) for each in told):
        return Bearing.NOT  # a rule knows this line, and it says something else
    hits = [hit.rule for part in segments(text) for hit in desk.matcher.match(part)]
    if any(rule.failure_type == failure_type for rule in hits):
        return Bearing.SYMPTOM
    if not told and not all(map(_says_little, hits)):
        return Bearing.NOT
    if not (told or _is_error(line) or _is_odd_end(line, desk)) or not _may_speak(line, desk):
        return Bearing.NOT
    scores = words.scores(text)
    own = scores.pop(failure_type, 0.0)
    others = max(scores.values(), default=0.0)
    return Bearing.WORDS if own >= _least(line, text, told, others, desk) else Bearing.NOT


def _least(line: Line, text: str, told: Sequence[Candidate], others: float, desk: Desk) -> float:
    """What the words of a line must weigh to speak for a type, where those of any other weigh `others`."""
    if any(each.failure_type not in _OPEN_TYPES for each in told):
        return max(WORDS_SCORE, HINT_MARGIN * others)
    if raised := _raised(line, text, desk):
        if raised in _BARE:
            return max(WORDS_SCORE, min(BARE_MARGIN * others, others + BARE_LEAD))
        return max(WORDS_SCORE, NEAR_TOP * others)
    if _is_error(line) or _LOUD.search(text[:4096]):
        return max(LOUD_SCORE, LOUD_MARGIN * others)
    if line.level not in (Level.DEBUG, Level.INFO) and is_error_like(text):
        return max(CALM_SCORE, LOUD_MARGIN * others)
    return math.inf  # nothing tells that anything went wrong here


# What rules say of an exception that they do not know, or cannot place.
_OPEN_TYPES = ("code.runtime", "unknown")
_BARE = ("RuntimeError", "Exception", "BaseException", "Error", "SystemError")
_EXCEPTION = re.compile(r"\b(_?[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Fault|Failure))(?::|$)")
_LOUD = re.compile(r"(?i)\b(?:error|fatal|critical|panic)\b ?[:\]]")


def _raised(line: Line, text: str, desk: Desk) -> str:
    """The bare class of the exception that a line names, empty where it names none."""
    for record in desk.findings.scene.records.get(line.file, ()):
        for each in record.raised:
            if each.at.number == line.number:
                return each.type.rsplit(".", 1)[-1]
    named = _EXCEPTION.search(text[:4096])
    return named[1] if named else ""


def says_little(failure_type: str, strength: Strength) -> bool:
    """Whether this leaves room for a better name: a mere hint, or an exception of no better type."""
    if failure_type == "code.runtime":
        return strength is not Strength.DEFINITE
    return failure_type == "unknown" or strength is Strength.HINT


def _says_little(rule: Rule) -> bool:
    return says_little(str(rule.failure_type), rule.strength)


def _may_speak(line: Line, desk: Desk) -> bool:
    """Whether a line tells what happened: no setting, no measurement, no frame or source of a traceback."""
    role = next((each.role for each in desk.inventory.sources if each.file == line.file), None)
    if role in (SourceRole.ENVIRONMENT, SourceRole.METRICS, SourceRole.HARDWARE):
        return False
    for record in desk.findings.scene.records.get(line.file, ()):
        if record.raised and record.lines[0].number <= line.number < record.raised[-1].at.number:
            return any(each.at.number == line.number for each in record.raised)
    return True


def _is_error(line: Line) -> bool:
    return line.level in (Level.ERROR, Level.CRITICAL)


def _is_odd_end(line: Line, desk: Desk) -> bool:
    """Whether a line stands near the end of its file, and seldom anywhere in it."""
    for reading in desk.findings.scene.readings:
        if reading.source.file == line.file and reading.lines:
            if line.number <= reading.lines[-1].number - END_LINES:
                return False
            kind = masked(line.text)
            return all(
                row.files.get(line.file, 0) <= RARE for row in desk.catalogue.rows if kind in row.masked
            )
    return False
