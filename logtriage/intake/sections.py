"""Ends of several files in one, as `tail *.log` prints them, below headings such as `==> rank_3.log <==`.

They are read as the files that they were, like the members of an archive; what is cited of them is named by
its line in the file that holds them all. `tail -f` goes on with a file under a further heading. So are the
sections that `more` prints, that people part by a name between signs (`----- rank_3.log -----`), and that
stand below a prompt (`$ cat rank_3.log`), where there are two at least.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import defaultdict
from collections.abc import Sequence

from logtriage.intake.text import decoded

MOST_BYTES = 64 << 20
MOST_SECTIONS = 20_000
LEAST_SECTIONS = 2
_FILE = rb"[\w./@+=~-]{0,200}\.(?:log|out|err|txt|stdout|stderr|jsonl?|csv|dmesg|journal)(?:\.\d{1,3})?"
_FORMS = (
    rb"==> (?P<tail>[^\n]{1,400}) <==",
    rb":{14}\r?\n(?P<more>[^\n]{1,400})\r?\n:{14}",
    rb"(?P<sign>[=#*~_-])(?P=sign){2,80} ?(?P<between>" + _FILE + rb") ?:?(?:(?P=sign){3,80})?",
    rb"#{1,6} `?(?P<title>" + _FILE + rb")`?:?",
    rb"(?:\S{1,80}[$#%] |[$%] )(?:cat|(?:tail|head)(?: -n? ?\d+)?|less|more) (?P<shown>[^\s|*?]{1,300})",
)
_HEADING = re.compile(rb"^(?:" + rb"|".join(_FORMS) + rb")[ \t]*\r?$", re.MULTILINE)

Ranges = tuple[tuple[int, int], ...]  # bytes of a file: (start, stop)


def begins_with_section(head: bytes) -> bool:
    """Whether a file that begins so may be made of sections."""
    return _HEADING.match(head.lstrip(b"\r\n")[:512]) is not None


def sections(data: bytes) -> dict[str, Ranges]:
    """By the name of each file, where its lines stand; empty where the text is not made of sections.

    All headings are of the form of the first.
    """
    headings = list(itertools.islice(_HEADING.finditer(data), MOST_SECTIONS))
    headings = [each for each in headings if each.lastgroup == headings[0].lastgroup]
    if not headings or (headings[0].lastgroup != "tail" and len(headings) < LEAST_SECTIONS):
        return {}
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    ends = [heading.start() for heading in headings[1:]] + [len(data)]
    for heading, end in zip(headings, ends, strict=True):
        start = min(heading.end() + 1, end)
        if end < len(data) and data.endswith(b"\n\n", start, end):
            end -= 1  # the empty line before the next heading is none of the file's
        found[_name(heading[heading.lastgroup or 0])].append((start, end))
    return {name: tuple(ranges) for name, ranges in found.items()}


def _name(heading: bytes) -> str:
    """A path below the file that holds the sections, whatever the heading says."""
    parts = [part for part in decoded(heading).strip().split("/") if part.strip(". ")]
    name = "/".join(part.lstrip(".") for part in parts) or "unnamed"
    return name if "." in name else f"{name.replace(' ', '_')}.log"


def lines_of_ranges(offsets: Sequence[int], ranges: Ranges) -> list[int]:
    """Which lines of a file, from 0, those of a section are; `offsets` are those of all lines."""
    return [
        line
        for start, stop in ranges
        for line in range(bisect.bisect_left(offsets, start), bisect.bisect_left(offsets, stop))
    ]
