"""Whose job a scheduler's line is about: a controller's log tells of all jobs of its cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.intake.reading import Reading
from logtriage.model import Line, SourceRole
from logtriage.rulebank.rule import Role

_JOB = re.compile(r"\b[Jj]ob_?[Ii]d[=: ](\d{1,12})\b")
_NUMBER = re.compile(r"(?<!\d)\d{3,12}(?!\d)")
_SPEAKS_OF_JOB = re.compile(r"(?i)\b(?:job|step|slurm)")
MANY_JOBS = 3  # a log that names so many is a controller's, not one job's record


@dataclass(frozen=True, slots=True)
class OtherJobs:
    """The numbers that a scheduler's logs name, and those of them that the job's own files know."""

    named: frozenset[str]
    own: frozenset[str]

    def concern(self, line: Line, role: Role) -> bool:
        """Whether what a line says is about another job; of unknown jobs, only failures count."""
        if len(self.named) < MANY_JOBS:
            return False
        numbers = set(_JOB.findall(line.text[:2000]))
        if not numbers:
            return False
        return not numbers & self.own if self.own else role in (Role.PROGRESS, Role.CONTEXT)


def other_jobs(readings: Sequence[Reading]) -> OtherJobs:
    """Job numbers of controllers' logs held against the names and lines of the job's own files."""
    named = {
        number
        for reading in readings
        if reading.source.role is SourceRole.SCHEDULER
        for line in reading.lines
        if "ob" in line.text
        for number in _JOB.findall(line.text[:2000])
    }
    if len(named) < MANY_JOBS:
        return OtherJobs(frozenset(named), frozenset())
    known: set[str] = set()
    for reading in readings:
        if reading.source.role is SourceRole.SCHEDULER:
            continue
        known.update(_NUMBER.findall(reading.source.file))
        for line in (*reading.lines[:200], *reading.lines[-200:]):
            if _SPEAKS_OF_JOB.search(line.text[:400]):
                known.update(_NUMBER.findall(line.text[:400]))
    return OtherJobs(frozenset(named), frozenset(named & known))
