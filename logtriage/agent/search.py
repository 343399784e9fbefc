"""A search in a job's logs that tells nothing of what is hidden in them: it is made in the redacted text.

Were a pattern tried on the text itself, each answer (something was found, or nothing) would tell whoever asks
a little more of a secret, letter by letter.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any

from logtriage.agent.addressed import is_addressed
from logtriage.agent.desk import LOOK_SECONDS, Desk, normal
from logtriage.intake.lines import plain
from logtriage.intake.streams import StreamFault, pieces
from logtriage.model import Line, Source
from logtriage.redaction import PLACEHOLDER

LONGEST_PATTERN = 200
MOST_OF_A_FILE = 6  # the first line that matches, and the last ones: what ends a job stands at the end


class PatternFault(Exception):
    """No pattern that can be searched for; the message says why."""


def matching_lines(desk: Desk, pattern: str) -> tuple[list[Line], int]:
    """Lines that match a regular expression (RE2), in the order of files and lines, and how many files were
    not searched to their end for lack of time. Raises PatternFault.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise PatternFault(f"the pattern is longer than {LONGEST_PATTERN} characters")
    if "\\Q" in pattern:
        raise PatternFault("no such pattern: \\Q is not known here")
    wanted, loose = _compiled(pattern), _compiled(_ANCHORS.sub(_unanchored, pattern))
    until = time.monotonic() + LOOK_SECONDS
    found: dict[str, list[Line]] = defaultdict(list)
    whole = set()
    for reading in desk.findings.scene.readings:
        if reading.whole:
            whole.add(reading.source.file)
        told = zip(reading.lines, desk.redacted_lines(reading), strict=True)
        found[reading.source.file] = _ends(
            line
            for line, text in told
            if wanted.search(text.encode("utf-8", "replace")) and not is_addressed(normal(line.text))
        )
    unread = 0
    for source in desk.inventory.sources:
        if source.file not in whole and not _search_on(
            desk, source, wanted, loose, found[source.file], until
        ):
            unread += 1
    return [line for source in desk.inventory.sources for line in found[source.file]], unread


def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    options.case_sensitive = False
    options.never_nl = True
    try:
        return re2.compile(pattern.encode("utf-8", "replace"), options=options)
    except re2.error as fault:
        raise PatternFault(f"no such pattern: {str(fault)[:80]}") from None


# An escape, a class of characters, or what tells where a match may stand and takes no character.
_ANCHORS = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|[\^$]", re.DOTALL)


def _unanchored(match: re.Match[str]) -> str:
    return "(?:)" if match[0] in ("^", "$", "\\b", "\\B", "\\A", "\\z") else match[0]


def _ends(lines: Iterable[Line]) -> list[Line]:
    """The first and the last of lines, in their order."""
    own = sorted(lines, key=lambda line: line.number)
    return own if len(own) <= MOST_OF_A_FILE else [own[0], *own[1 - MOST_OF_A_FILE :]]


def _search_on(desk: Desk, source: Source, wanted: Any, loose: Any, own: list[Line], until: float) -> bool:
    """Search what was not read closely of a file; False where time was too short for all of it.

    Redacting all of it would take too long. So a line counts where the pattern matches between what is hidden
    in it; then it also matches, but for its anchors, in the line itself, which can be tried first.
    """
    known = desk.numbers_read(source.file)

    def counts(line: Line) -> bool:
        if time.monotonic() > until:
            return False
        shown = normal(line.text)
        parts = PLACEHOLDER.split(desk.hidden(shown))
        return any(wanted.search(part.encode("utf-8", "replace")) for part in parts) and not is_addressed(
            shown
        )

    found = list(own)
    try:
        for piece in pieces(desk.inventory.root, source, size=1 << 20):
            lines = _of_piece(source, piece, loose) if loose.search(piece.data) is not None else []
            lines = [line for line in lines if line.number not in known]
            found += islice(filter(counts, lines), 1)
            found += islice(filter(counts, reversed(lines)), MOST_OF_A_FILE - 1)
            found = _ends(dict.fromkeys(found))
            if time.monotonic() > until:
                break
    except StreamFault:
        pass  # what was readable counts
    own[:] = found
    return time.monotonic() <= until


def _of_piece(source: Source, piece: Any, loose: Any) -> list[Line]:
    lines = []
    offset = piece.offset
    for number, raw in enumerate(piece.data.split(b"\n"), piece.first_line):
        if loose.search(raw) is not None:
            text = plain(raw)
            lines.append(Line(source.file, number, offset, text, text, rank=source.rank, host=source.host))
        offset += len(raw) + 1
    return lines
