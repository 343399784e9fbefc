"""JSON records that are printed over many lines: exports of cloud logging and of other stores of logs.

`gcloud logging read --format=json`, `aws logs get-log-events`, a download from a console: an array of objects
with each field on a line of its own, those that name the writer and the time often behind the message.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from logtriage.intake.json_lines import MESSAGES, JsonRecord, read_json
from logtriage.regex import regex

LEAST_RECORDS = 3  # of a file, or of a part of it: fewer are an object of another kind
MOST_LINES = 400  # of one record
MOST_BYTES = 256 << 10

_MESSAGE = regex(r'^\s*"(?:' + "|".join(MESSAGES) + r')"\s*:\s*("(?:[^"\\]|\\.)*"),?\s*$')


def printed_records(lines: Sequence[bytes], year: int | None) -> Iterator[tuple[int, int, JsonRecord]]:
    """The records among whole lines: index of the first line and behind the last one, and what they say."""
    depths = Counter(len(line) - 1 for line in lines if line.strip(b" ") == b"{")
    if sum(depths.values()) < LEAST_RECORDS:
        return
    indent = b" " * max(depths, key=lambda depth: (depths[depth], -depth))
    start: int | None = None
    for index, line in enumerate(lines):
        if line == indent + b"{":
            start = index
        elif start is not None and line in (indent + b"}", indent + b"},"):
            text = b"\n".join(lines[start : index + 1])
            if index - start < MOST_LINES and len(text) < MOST_BYTES:
                record = read_json(text.decode("utf-8", "replace").rstrip(","), year, with_extra=False)
                if record is not None:
                    yield start, index + 1, record
            start = None


def message_of(text: str) -> str | None:
    """What a record's line that holds its message says; None for any other line."""
    if '"' not in text or (found := _MESSAGE.match(text)) is None:
        return None
    try:
        return str(json.loads(found[1]))
    except ValueError:
        return None
