"""What the very job that teaches a rule wrote while it was well: no rule learned from it may match that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.intake.folder import NothingReadable
from logtriage.intake.reading import Reading
from logtriage.memory.evidence import Witness, closely_read, hits_of
from logtriage.memory.usual import UsualLines
from logtriage.model import Line
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Rule


@dataclass(frozen=True, slots=True)
class OwnJob:
    """The job's lines as a triage reads them, with the usual ones of each file."""

    witness: Witness
    files: Sequence[tuple[Reading, UsualLines]]

    def survived(self, rule: Rule) -> list[Line]:
        """The lines that the rule matches and after which their writers went on as ever.

        None where that is so of the witness: then the course of the job tells nothing.
        """
        matcher = Matcher(Bank((rule,), {}, ""))
        keywords = [keyword.lower() for keyword in rule.keywords]
        found: list[Line] = []
        if self.witness.is_outlived:
            return []
        for reading, usual in self.files:
            lines = [
                line
                for line in reading.lines
                if any(keyword in line.text.lower() for keyword in keywords)
                and hits_of(line, reading, matcher)
            ]
            numbers = frozenset(line.number for line in lines)
            went_on = [line for line in lines if usual.went_on(line, numbers)]
            said = {line.message for line in went_on}
            found += [line for line in lines if line.message in said and not self._is_own(line)]
        return found

    def _is_own(self, line: Line) -> bool:
        return (line.file, line.number) == (self.witness.cited.file, self.witness.cited.line)


def own_job(paths: Sequence[str], witness: Witness) -> OwnJob:
    """The job of a witness; without any line where its logs are gone."""
    try:
        readings = closely_read(paths)
    except (NothingReadable, OSError):
        readings = []
    ends = {witness.cited.file: witness.cited.line}
    return OwnJob(witness, [(each, UsualLines(each, ends.get(each.source.file))) for each in readings])
