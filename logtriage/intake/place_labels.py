"""Labels that whoever gathered the output of several machines or pods puts before each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.regex import regex

# What tells more than the place, which those know who read labels by their own row: a rank behind it.
_MORE = regex(r"(?i)rank[ _:=-]?\d{1,6} ?\|")
MOST_LABELLED = 0.9  # of a file's lines so many begin with a label; others are the gatherer's own
LEAST_TURNS = 2  # so many times as often as there are labels the writers take turns: phases follow each other
LEAST_LINES = 3  # of each writer, mostly

_NAME = r"((?!container_)(?=[\w.-]{0,100}\d)[A-Za-z][\w.-]{1,100})"
_HYPHENED = r"((?=[\w.-]{0,100}[\d-])[A-Za-z][\w.-]{1,100})"  # in brackets, loggers have such names too
# `[cn-3] …`, `cn-3 | …` as docker compose has it, and stern's `pod container …`.
_FORMS = (
    regex(rf"\[{_NAME}\](?: ?\| ?| )"),
    regex(rf"{_HYPHENED} {{0,40}}\| ?"),
    regex(rf"{_NAME} (?P<container>[a-z][a-z0-9-]{{1,40}}) "),
)


@dataclass(frozen=True, slots=True)
class PlaceLabels:
    """The form of the labels of a file, by its place, and the names in them."""

    form: int
    names: frozenset[str]

    def read(self, text: str) -> tuple[str, int] | None:
        """The name before a line, and where its label ends."""
        found = _FORMS[self.form].match(text)
        return (found[1], found.end()) if found is not None and found[1] in self.names else None


def place_labels(texts: Sequence[str], is_no_place: Callable[[str], bool]) -> PlaceLabels | None:
    """The labels with which nearly all lines of a file begin, if several writers take turns in it."""
    for form, pattern in enumerate(_FORMS):
        found = [match for text in texts if (match := pattern.match(text)) is not None]
        if not found or len(found) < MOST_LABELLED * len(texts):
            continue
        if any(_MORE.match(match.string, match.end()) for match in found[:100]):
            return None
        counts = Counter(match[1] for match in found)
        often = sum(count for count in counts.values() if count >= LEAST_LINES)
        turns = sum(match[1] != then[1] for match, then in pairwise(found))
        # Behind a bar in each line they need not take turns: who joins files with labels writes one by one.
        turn = turns >= LEAST_TURNS * len(counts) or (form > 0 and len(found) == len(texts))
        lettered = {name.rpartition("-")[0] for name in counts if not any(map(str.isdigit, name))}
        containers = {match["container"] for match in found} if pattern is _FORMS[2] else set()
        if (
            len(counts) > 1
            and often >= MOST_LABELLED * len(found)
            and turn
            and len(containers) < 2
            and not any(is_no_place(name) for name in counts if name.rpartition("-")[0] not in lettered)
            and (not lettered or _are_a_row(counts))
        ):
            return PlaceLabels(form, frozenset(counts))
    return None


def _are_a_row(names: Iterable[str]) -> bool:
    """Whether names differ in a letter or two behind their last hyphen: `gpu-a`, `gpu-b`."""
    parts = [name.rpartition("-") for name in names]
    return len({stem for stem, _, _ in parts}) == 1 and all(0 < len(last) < 3 for _, _, last in parts)
