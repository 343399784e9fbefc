"""What a model may look at: the lines of one job, under short names, without secrets."""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from logtriage.agent.addressed import LEFT_OUT, is_addressed
from logtriage.agent.routine import Routine
from logtriage.diagnose.decision import Decision
from logtriage.intake.folder import Inventory
from logtriage.intake.lines import plain
from logtriage.intake.reading import Reading
from logtriage.intake.streams import StreamFault, pieces
from logtriage.localize.findings import Findings
from logtriage.mining.catalogue import Catalogue
from logtriage.model import Line
from logtriage.redaction import Redaction
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher

WIDTH = 220  # characters of a line that are shown
LONGEST_SECRET = 4_000  # so many more are looked at for secrets
_CUT_PLACEHOLDER = re.compile(r"<[a-z]*-?\d*\Z")
LOOK_SECONDS = 3.0  # for one look into files that were not read closely

_PLACE = re.compile(r"\[?\s*F(\d{1,4})\s*:\s*L?(\d{1,12})\s*\]?")


@dataclass(frozen=True, slots=True)
class Precedent:
    """A confirmed diagnosis of an earlier job that looks like this one; `likeness` is 0 to 1."""

    failure_type: str
    title: str
    likeness: float
    mitigation: str = ""
    reference: str = ""  # id of its verdict


def hidden_hosts(findings: Findings, inventory: Inventory) -> set[str]:
    """All names of hosts that the logs or the files' names gave."""
    topology = findings.topology
    named = {*topology.hosts, *topology.host_of_file.values(), *topology.host_of_rank.values()}
    named |= {each.host for each in findings.candidates if each.host is not None}
    return named | {source.host for source in inventory.sources if source.host is not None}


@dataclass(slots=True)
class Desk:
    """One job as a model sees it. Files go by F1, F2… in the order in which they are first named."""

    findings: Findings
    decision: Decision
    catalogue: Catalogue
    inventory: Inventory
    bank: Bank
    matcher: Matcher
    redaction: Redaction
    precedents: Sequence[Precedent] = ()
    routine: Routine | None = None
    files: list[str] = field(default_factory=list)
    _numbers: dict[str, dict[int, Line]] = field(default_factory=dict)
    _redacted: dict[str, list[str]] = field(default_factory=dict)
    _templates: list[str] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)  # votes look things up side by side

    def __post_init__(self) -> None:
        # All at once: what one line gives away is hidden in all others, and a key block has many lines.
        for reading in self.findings.scene.readings:
            self.redaction.learn("\n".join(line.text for line in reading.lines))

    def place(self, file: str, line: int) -> str:
        """`F2:38`."""
        with self._lock:
            if file not in self.files:
                self.files.append(file)
            return f"F{self.files.index(file) + 1}:{line}"

    def found(self, place: str) -> Line | None:
        """The line that a place names, if there is one in this job's files."""
        match = _PLACE.fullmatch(place.strip())
        if match is None:
            return None
        index, number = int(match[1]) - 1, int(match[2])
        return self.line(self.files[index], number) if 0 <= index < len(self.files) else None

    def line(self, file: str, number: int) -> Line | None:
        """A line of a file of this job: from the close reading, else from the file itself."""
        if file not in self._numbers:
            self._numbers[file] = {
                line.number: line
                for reading in self.findings.scene.readings
                if reading.source.file == file
                for line in reading.lines
            }
        known = self._numbers[file].get(number)
        if known is None and number > 0 and (read := self._read(file, number)) is not None:
            known = self._numbers[file][number] = read
        return known

    def redacted_lines(self, reading: Reading) -> list[str]:
        """The lines of a close reading without secrets, however long."""
        with self._lock:
            file = reading.source.file
            if file not in self._redacted:
                texts = [normal(line.text) for line in reading.lines]
                self._redacted[file] = self.redaction.redact_lines(texts)
            return self._redacted[file]

    def redacted_templates(self) -> list[str]:
        """The templates of the catalogue without secrets, in its order."""
        with self._lock:
            if not self._templates:
                self._templates = self.redaction.redact_lines([row.template for row in self.catalogue.rows])
            return self._templates

    def numbers_read(self, file: str) -> frozenset[int]:
        """The numbers of the lines of a file that were read closely."""
        readings = [each for each in self.findings.scene.readings if each.source.file == file]
        return frozenset(line.number for reading in readings for line in reading.lines)

    def _read(self, file: str, number: int) -> Line | None:
        source = next((each for each in self.inventory.sources if each.file == file), None)
        reading = next((each for each in self.findings.scene.readings if each.source.file == file), None)
        if source is None or (reading is not None and reading.whole):
            return None
        until = time.monotonic() + LOOK_SECONDS
        try:
            for piece in pieces(self.inventory.root, source, size=1 << 20):
                inside = number - piece.first_line
                if inside < piece.data.count(b"\n") + (not piece.data.endswith(b"\n")):
                    before = piece.data.split(b"\n", inside + 1)
                    offset = piece.offset + sum(len(each) + 1 for each in before[:inside])
                    text = plain(before[inside])
                    return Line(file, number, offset, text, text, rank=source.rank, host=source.host)
                if time.monotonic() > until:
                    return None
        except StreamFault:
            pass
        return None

    def shown(self, line: Line, width: int = WIDTH) -> str:
        """A line as a model sees it: one line, cut, without secrets, and nothing that talks to the model."""
        whole = normal(line.text)
        if is_addressed(whole):
            return LEFT_OUT
        message = normal(line.message)
        text = message if message and message in whole else whole
        # Hidden before it is cut: the head of a key is no longer known as one.
        hidden = self.hidden(text[: width + LONGEST_SECRET])
        return hidden if len(hidden) <= width else _CUT_PLACEHOLDER.sub("", hidden[:width]) + "…"

    def hidden(self, text: str) -> str:
        with self._lock:
            return self.redaction.redact(text.replace("```", "'''"))

    def told(self, text: str) -> str:
        """A text that is no line, such as a name: without secrets, and nothing that talks to the model."""
        plain = normal(text)
        return LEFT_OUT if is_addressed(plain, may_name_types=True) else self.hidden(plain)

    def is_routine(self, line: Line) -> bool:
        """Whether every healthy job of this family writes this line, and it stands nowhere near the end."""
        return self.routine is not None and self.routine.drops(line)

    def cited(self, line: Line, width: int = WIDTH) -> str:
        """`F2:38 rank 2 18:05:39 the words of the line`."""
        rank = self.findings.topology.rank(line)
        host = self.findings.topology.host(line, rank)
        moment = self.findings.time(line)
        parts = [self.place(line.file, line.number)]
        parts += [f"rank {rank}"] if rank is not None else []
        parts += [self.told(host)] if host and len(self.findings.topology.hosts) > 1 else []
        parts += [time.strftime("%H:%M:%S", time.gmtime(moment))] if _is_dated(moment) else []
        return f"{' '.join(parts)} | {self.shown(line, width)}"


def _is_dated(moment: float | None) -> bool:
    return moment is not None and 0 <= moment < 1e11


def normal(text: str) -> str:
    """Without terminal escapes, hidden and control characters, white space as single spaces."""
    clean = plain(text.encode("utf-8", "surrogatepass"))
    if clean.isascii() and clean.isprintable():
        return " ".join(clean.split())
    seen = (each for each in clean if unicodedata.category(each) != "Cf")
    return " ".join("".join(each if each.isprintable() else " " for each in seen).split())
