"""JSON records that are printed over many lines: exports of cloud logging and of other stores of logs.

`gcloud logging read --format=json`, `aws logs get-log-events`, a download from a console: an array of objects
with each field on a line of its own, those that name the writer and the time often behind the message. Loki's
answers to a query list pairs of time and text below the labels of who wrote them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from logtriage.intake.json_lines import MESSAGES, JsonRecord, read_json
from logtriage.regex import regex

LEAST_RECORDS = 3  # of a file, or of a part of it: fewer are an object of another kind
MOST_LINES = 400  # of one record
MOST_BYTES = 256 << 10

_MESSAGE = regex(r'^\s*"(?:' + "|".join(MESSAGES) + r')"\s*:\s*("(?:[^"\\]|\\.)*"),?\s*$')


def printed_records(lines: Sequence[bytes], year: int | None) -> Iterator[tuple[int, int, JsonRecord]]:
    """The records among whole lines: index of the first line and behind the last one, and what they say."""
    if any(line.lstrip() == _STREAM for line in lines):
        yield from _of_streams(lines, year)
        return
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


# https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-within-a-range-of-time
_STREAM = b'"stream": {'
_NANOSECONDS = regex(r'^\s*(?:\[\s*)?"(?P<time>\d{19})",(?P<rest>.*)$')
_TEXT = regex(r'^\s*(?P<text>"(?:[^"\\]|\\.)*")')


def _of_streams(lines: Sequence[bytes], year: int | None) -> Iterator[tuple[int, int, JsonRecord]]:
    """The texts of Loki's streams, each a record on its own line: behind its time or on the line below."""
    labels: dict[str, object] = {}
    since: int | None = None  # where the labels of the stream begin
    time = ""
    for index, line in enumerate(lines):
        if line.lstrip() == _STREAM:
            since = index
        elif since is not None and line.lstrip() in (b"}", b"},"):
            labels, since = _labels(lines[since + 1 : index]), None
        elif len(line) < MOST_BYTES and b'"' in line:
            told = line.decode("utf-8", "replace")
            if (stamped := _NANOSECONDS.match(told)) is not None:
                time, told = stamped["time"], stamped["rest"]
            if time and (found := _TEXT.match(told)) is not None:
                if (record := _of_stream(found["text"], time, labels, year)) is not None:
                    yield index, index + 1, record
                time = ""


def _labels(lines: Sequence[bytes]) -> dict[str, object]:
    try:
        found = json.loads(b"{" + b"".join(lines[:MOST_LINES]) + b"}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_stream(quoted: str, time: str, labels: dict[str, object], year: int | None) -> JsonRecord | None:
    """What a text says, by itself where it is JSON, and by its stream's labels of time and writer."""
    try:
        text = str(json.loads(quoted))
    except ValueError:
        return None
    outer = read_json(json.dumps({"labels": labels, "time": time, "message": text}), year, with_extra=False)
    inner = read_json(text, year, with_extra=False) if text.startswith("{") else None
    if inner is None or outer is None:
        return outer
    return replace(inner, host=inner.host or outer.host, stamp=outer.stamp, level=inner.level or outer.level)


def message_of(text: str) -> str | None:
    """What a record's line that holds its message says; None for any other line."""
    if '"' not in text or (found := _MESSAGE.match(text)) is None:
        return None
    try:
        return str(json.loads(found[1]))
    except ValueError:
        return None
