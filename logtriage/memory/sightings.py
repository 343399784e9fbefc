"""Where rules are hit by raw lines, judged as a triage judges them: by their words and their level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from logtriage.intake.folder import Inventory
from logtriage.intake.layout import Layout
from logtriage.intake.lines import LineReader, plain, segments
from logtriage.intake.stored_lines import stored_lines
from logtriage.intake.streams import StreamFault, pieces
from logtriage.model import Level, Source, SourceRole
from logtriage.rulebank.matcher import Hit, Matcher


@dataclass(frozen=True, slots=True)
class Sighting:
    """One line that a rule matched, with what it captured."""

    file: str
    line: int
    text: str
    captures: tuple[tuple[str, str], ...]


def line_hits(matcher: Matcher, raw: bytes, role: SourceRole | None = None) -> list[Hit]:
    """The hits on one raw line; the level is read only where a rule asks for one."""
    hits = matcher.match_segments(segments(plain(raw)), role)
    if not any(hit.rule.level or hit.rule.beside for hit in hits):
        return hits
    level, text = level_of(raw), plain(raw)
    return [hit for hit in hits if hit.rule.admits(level, text)]


def level_of(raw: bytes) -> Level | None:
    """The level that a line's own head names."""
    return LineReader(_ALONE, Layout()).read(raw, 1, 0).level


_ALONE = Source("", 0, SourceRole.MERGED)


def sightings(matcher: Matcher, inventory: Inventory) -> Iterator[Sighting]:
    """All hits in the logs of a job, line by line, in order of files."""
    for source in inventory.sources:
        try:
            stored = stored_lines(inventory.root, source)
            file = (stored.file if stored is not None else None) or source.file
            for piece in pieces(inventory.root, source):
                for number, raw in enumerate(piece.data.split(b"\n"), piece.first_line):
                    if stored is not None:
                        number = (stored.place(number) or (number, 0))[0]
                    for hit in line_hits(matcher, raw, source.role):
                        yield Sighting(file, number, plain(raw), hit.captures)
        except StreamFault:
            continue
