"""One rule: what it says, what it matches, and the lines that prove it (format: docs/rules.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from logtriage.model import Level, SourceRole


class Role(StrEnum):
    CAUSE = "cause"
    SYMPTOM = "symptom"
    CONTEXT = "context"
    PROGRESS = "progress"


class Strength(StrEnum):
    DEFINITE = "definite"
    LIKELY = "likely"
    HINT = "hint"


class Ratio(StrEnum):
    """How the groups `part` and `whole` of a pattern must stand to each other: `3 of 3 failed`."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


class Mark(StrEnum):
    """What a progress or context line stands for."""

    STEP = "step"
    CHECKPOINT = "checkpoint"
    RESUMED = "resumed"
    COMPLETED = "completed"
    STARTED = "started"
    LOADING = "loading"
    COMPILING = "compiling"
    EVALUATING = "evaluating"
    SAVING = "saving"
    EXIT = "exit"
    RESTART = "restart"
    FRAMEWORK = "framework"


@dataclass(frozen=True, slots=True)
class Mitigation:
    text: str
    when: str | None = None  # only when this software was seen in the log


@dataclass(frozen=True, slots=True)
class Example:
    line: str
    captures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Of a rule learned from a confirmed diagnosis: which verdict, by whom, when, from which line."""

    verdict: str
    by: str
    at: str  # ISO 8601 in UTC
    evidence: str  # FILE:LINE


def gravity(level: Level) -> int:
    """A number that is larger the graver a level is."""
    return _LEVELS.index(level)


_LEVELS = tuple(Level)  # the gravest last


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    failure_type: str | None
    role: Role
    strength: Strength
    title: str
    keywords: tuple[str, ...]
    pattern: str
    where: tuple[SourceRole, ...] = ()
    explains: tuple[str, ...] = ()
    mitigation: tuple[Mitigation, ...] = ()
    references: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    counterexamples: tuple[str, ...] = ()
    marks: Mark | None = None
    voids: str = ""  # "line": no other hit of the line counts; "phrase": none that overlaps the match
    framework: str | None = None
    provenance: Provenance | None = None
    file: str = ""
    line: int = 0
    level: Level | None = None  # the least: a line that is known to be calmer is no hit
    ratio: Ratio | None = None
    outlived: bool = False  # of a learned one: the job that taught it went on after its line
    beside: tuple[tuple[str, str], ...] = ()  # fields of a JSON record, and the words they hold

    def admits(self, level: Level | None, text: str) -> bool:
        """Whether a line of this level (None: unknown) is as grave, and says beside its message what the
        rule wants.
        """
        if self.level is not None and level is not None and gravity(level) < gravity(self.level):
            return False
        return all(
            re.search(rf'"{re.escape(name)}\\?"\s*:\s*(?:\\?")?{re.escape(value)}\b(?!-)', text)
            for name, value in self.beside
        )

    def entitled(self, captures: dict[str, str]) -> str:
        """The title with `{name}` filled from the captures; what has no value is left out, with its unit."""
        title = self.title
        for name, value in captures.items():
            title = title.replace("{" + name + "}", value)
        while (start := title.find("{")) >= 0 and (end := title.find("}", start)) > 0:
            title = title[:start].rstrip() + title[end + 1 :].removeprefix(" ms")
        return " ".join(title.replace(" ()", "").split())


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a rule, and where it stands."""

    file: str
    line: int
    rule: str
    message: str
    severity: str = "error"  # error | warning

    def __str__(self) -> str:
        named = f" rule {self.rule}:" if self.rule else ""
        return f"{self.file}:{self.line}:{named} {self.message}"


WORD = "\\b"  # begins and ends a keyword that must stand as a word of its own, such as \\binf\\b


def literal(keyword: str) -> str:
    """The text of a keyword."""
    return keyword.removeprefix(WORD).removesuffix(WORD)
