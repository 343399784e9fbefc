"""Times of all ranks that one line lists in turn: `fwd+bwd per rank: 0.9 0.9 1.8 | wait: 0.9 0.9 0.0`.

Who prints such a line gathered them; the place in the list is the rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from logtriage.regex import regex

LEAST_LISTED = 3  # of fewer values none is odd
MOST_LISTED = 900
_VALUE = r"\d{1,9}(?:\.\d{1,9})?"
_UNIT = r"[\[(](?P<unit>ms|msec|s|sec|seconds|milliseconds)[\])]"
# `step time per rank (ms): [812, 809, 1604]`, `per-rank forward: 0.4 0.4 0.9`, `times by rank = 1.1/1.2/2.4`
_OF_RANKS = regex(
    rf"(?i)(?:(?P<before>[a-z][\w+/ -]{{1,40}}?)[ _](?:per|by|of each|of all|across|for each)[ _-]ranks?\b"
    rf"|\bper[ _-]rank[ _](?P<behind>[a-z][\w+/ -]{{1,40}}?))(?: ?{_UNIT})? ?[:=] ?"
    rf"(?P<values>[\[(]? ?{_VALUE}(?:(?:, ?| ?/ ?| {{1,4}}){_VALUE}){{2,{MOST_LISTED}}})(?![\w.])"
)
# A second list beside it: `| allreduce wait: 0.95 0.95 0.01 0.95`.
_BESIDE = regex(
    rf"(?i)[|;,] ?(?P<name>[a-z][\w+/ -]{{1,40}}?)(?: ?{_UNIT})? ?[:=] ?"
    rf"(?P<values>[\[(]? ?{_VALUE}(?:(?:, ?| ?/ ?| {{1,4}}){_VALUE}){{2,{MOST_LISTED}}})(?![\w.])"
)
_NUMBER = regex(_VALUE)


def listed_times(text: str) -> Iterator[tuple[str, list[float]]]:
    """The lists of a line that says that they are of all ranks: what was timed, and by rank the seconds."""
    told = _OF_RANKS.search(text[:16_000])
    if told is None:
        return
    first = _seconds(told["values"], told["unit"])
    yield (told["before"] or told["behind"]).strip().lower(), first
    for beside in _BESIDE.finditer(text[:16_000], told.end()):
        values = _seconds(beside["values"], beside["unit"])
        if len(values) == len(first):
            yield beside["name"].strip().lower(), values


def _seconds(values: str, unit: str | None) -> list[float]:
    factor = 0.001 if unit is not None and unit.lower().startswith("m") else 1.0
    return [factor * float(value) for value in _NUMBER.findall(values)]
