"""Lines that a console exports beside its own time: behind a tab, or in a row of comma-separated values."""

from __future__ import annotations

import csv
import re

from logtriage.regex import regex

MOST_SIGNS = 65_536  # of a row that is read

# Where a logger parts its columns by tabs, the writer's host and number come next; behind a comma alone,
# loggers give milliseconds.
_BEHIND = r"(?:\t(?![A-Za-z][\w.-]{1,100}:\d{1,6}\t)|\",\"?|,\"|(?<=\.\d{3}),(?=\S)|(?<=Z),(?=\S))"
_EXPORTED = regex(
    r"\"?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?" + _BEHIND, re.ASCII
)
# The same in blurs (see `rulebank.blur`), and without digits.
_IN_BLURS = regex(
    rb"0000-00-00[T ]00:00:00(?:\.0{1,9})?(?:Z|[+-]00:?00)?"
    + _BEHIND.replace(r"\d", "0").replace("A-Za-z", "A-Za-z0").encode()
)
_WITHOUT_DIGITS = regex(
    rb"\"?--[T ]::\.?(?:Z|[+-]:?)?" + _BEHIND.replace(r"\.\d{3}", r"\.").replace(r"\d{1,6}", "").encode()
)


# How consoles call the columns of what they export.
_TIME_COLUMNS = frozenset(("time", "timestamp", "@timestamp", "date", "datetime", "tsns"))
_HOST_COLUMNS = (
    *("hostname", "host", "host.name", "node", "node_name", "kubernetes.node.name", "kubernetes.host"),
    *("instance", "instance_name", "pod", "pod_name", "kubernetes.pod.name", "kubernetes.pod_name"),
    *("resource.labels.pod_name", "@logstream", "log stream name"),
)


# Of several streams of one group CloudWatch tells of which a line is: `sft-7/algo-2-1732079000`.
_STREAM = regex(r"[\w.-]{1,200}(?:/[\w.-]{1,200}){1,6}\t", re.ASCII)


def exported(text: str) -> str | None:
    """The line itself, of one that a console exported; else None.

    Of a row whose values are quoted it is the longest: their names stand in another line.
    """
    if text[4:5] != "-" and text[5:6] != "-":
        return None
    found = _EXPORTED.match(text)
    if found is None:
        return None
    behind = text[found.end() :]
    if (stream := _STREAM.match(behind)) is not None:
        return behind[stream.end() :]
    return max(row_of(text)[1:], key=len, default=behind) if '"' in found[0] else behind


def row_of(text: str) -> list[str]:
    """The values of a row; none of one that cannot be read."""
    try:
        return next(csv.reader([text[:MOST_SIGNS]]), [])
    except csv.Error:
        return []


def host_column(heading: str) -> int | None:
    """Which value of a row names the machine or pod, by the names of the columns in a file's first line."""
    names = [name.strip().lower() for name in row_of(heading)]
    if len(names) < 3 or _TIME_COLUMNS.isdisjoint(names):
        return None
    return next((names.index(name) for name in _HOST_COLUMNS if name in names), None)


def may_be_exported(blurred: bytes) -> bool:
    """Whether a line of this blur, or any of many, can be exported."""
    return _IN_BLURS.search(blurred) is not None


def is_exported(text: bytes) -> bool:
    """Whether a line that lacks its digits is one that was exported."""
    return _WITHOUT_DIGITS.match(text) is not None
