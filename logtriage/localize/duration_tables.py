"""Rows of tables of durations: bare values, each column named by the heading above.

`    rank  20 (cn-3):  6052.3 /  8041.5 /  18.7` below `times per rank, forward / backward / wait (ms):`, or
`cn-3 ranks 8-15   3385   wait 504` below `per-host forward+backward (ms), before all-reduce`.
"""

from __future__ import annotations

import re

from logtriage.localize.rosters import HOST_WORD
from logtriage.regex import regex

# Behind the rank or the host whose row it is: the other of both, or a range of ranks.
_BESIDE = regex(
    rf"^[\s|:,]*(?:\((?:[\w-]{{1,20}}[=: ])?{HOST_WORD}[^()]{{0,40}}\)|(?:on |@ ?){HOST_WORD}(?=[\s|:,]|$)"
    r"|[A-Za-z][\w.-]{0,60}-[\w.-]{0,20}\d(?=[\s|:,]|$)"  # `stage1 5.2 stage2 4.4` are no hosts
    r"|\(?(?i:ranks?)[ =:]{0,2}\[?\d{1,6}(?: ?(?:-|\.\.|to) ?\d{1,6})?\]?\)?)"
)
_CELL = regex(r"^[\s|:=,;/\[(]*(?P<value>\d+(?:\.\d+)?)\s*(?:ms\b|s\b)?(?![\w.%-])[\s\])]*(?=[|,;/\s]|$)")
MOST_COLUMNS = 16
_UNIT = regex(r"\s*[\[(](?:ms|msec|s|sec|seconds|milliseconds)[\])]")
# What a heading says is not in the values.
_NOT_COUNTED = regex(r"(?i),? \b(?:before|excluding|excl\.?|without|not counting|except)\b.*")
_COLUMNS_OF = regex(r"(?i)^\W{0,8}(?:global[ _])?(?:ranks?|hosts?|hostname|nodes?|machines?)\b")
_MEASURED = regex(r"(?i)[\[(_](?:ms|msec|s|sec|seconds|milliseconds)\b|\bmilliseconds\b")
LONGEST_HEADING = 160


def is_heading(text: str) -> bool:
    """Whether a line without values of its own can stand above a table of durations."""
    if len(text) > LONGEST_HEADING:
        return False
    return (
        text.rstrip().endswith(":")
        or _MEASURED.search(text) is not None
        or _COLUMNS_OF.match(text) is not None
    )


def cells(rest: str) -> tuple[list[float], str]:
    """The bare values of a row behind its rank or host, and what stands behind them."""
    for _ in range(2):
        if (beside := _BESIDE.match(rest)) is not None:
            rest = rest[beside.end() :]
    values: list[float] = []
    while len(values) < MOST_COLUMNS and (cell := _CELL.match(rest)) is not None:
        values.append(float(cell["value"]))
        rest = rest[cell.end() :]
    return values, rest


def columns(heading: str, count: int) -> list[str] | None:
    """The names of so many columns of values; of one alone the heading. None where they are not told."""
    told = _UNIT.sub("", _NOT_COUNTED.sub("", heading)).strip().rstrip(":").lower()
    if count == 1 and not _COLUMNS_OF.match(told):
        return [told]
    for separator in (r"/", r"\|", r"\t+", r",", r"\s{2,}", r"\s+"):
        parts = [part.strip() for part in re.split(separator, told.strip("|")) if part.strip()]
        if count <= len(parts) <= count + (3 if separator in (r"\|", r"\t+", r"\s{2,}", r"\s+") else 1):
            named = parts[len(parts) - count :]
            named[0] = re.split(r"[,:] ", named[0])[-1]
            return named
    return None
