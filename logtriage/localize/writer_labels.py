"""Labels in front of each line that number the writers: `[w-3]`, `[GPU3]`, `[3/8]`, `trainer/3`, `r3>`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from logtriage.model import Line

_WORDS = re.compile(r"\[(?:w|worker|proc|process|task|rank|node|host)[-_ ]?(\d{1,5})\]")
# A number here may count anything; only what alternates between 0 and n - 1 counts writers.
_NUMBERED = (
    re.compile(r"\[(?:[A-Za-z]{1,3}|gpu|GPU|cuda|npu|NPU|xpu|device|core|actor|replica)[-_: ]?(\d{1,5})\]"),
    re.compile(r"\[(\d{1,5})/\d{1,5}\] "),
    re.compile(r"[A-Za-z][\w.-]{0,40}?[-_/](\d{1,5})(?: {1,8}\| | [a-z][a-z-]{0,30} |(?<=/\d) |(?<=/\d\d) )"),
    re.compile(r"[a-z]{1,8}(\d{1,5})> "),
    re.compile(r"[A-Za-z][\w.-]{0,60} rank[-_ ]?(\d{1,5}): "),
)
_MACHINES = re.compile(r"(?i)\[?(?:node|host|machine|server|rack)")
SAMPLE = 2_000  # lines


def writer_label(lines: Sequence[Line]) -> re.Pattern[str] | None:
    """The pattern of a file's labels, whose group is the writer's number; None where it has none.

    A label repeats and alternates; an enumeration counts each number once, an epoch goes up.
    """
    texts = [line.text[:80] for line in lines[:SAMPLE]]
    found = [label[1] for text in texts if (label := _WORDS.match(text)) is not None]
    if len(set(found)) > 1 and len(found) * 3 >= len(texts):
        return _WORDS
    if any(line.rank is not None for line in lines[:SAMPLE]):
        return None  # the lines name their ranks themselves
    for pattern in _NUMBERED:
        numbers = [
            int(label[1])
            for text in texts
            if (label := pattern.match(text)) is not None and not _MACHINES.match(text)
        ]
        if len(numbers) * 3 >= len(texts) * 2 and _alternates(numbers):
            return pattern
    return None


_SAID = re.compile(r"(?:^|[\s-])\[[Rr]ank[ _:=-]?(\d{1,6})\](?!:)")


def said_ranks(lines: Sequence[Line]) -> dict[tuple[str | None, int], int]:
    """Rank by host and process, where a process says in its lines which rank it is, and only ever one.

    Ray labels lines by process; frameworks put `[Rank 5]` into the message behind the label.
    """
    told: dict[tuple[str | None, int], set[int]] = {}
    for line in lines:
        if line.pid is not None and "ank" in line.message and (said := _SAID.search(line.message[:300])):
            told.setdefault((line.host, line.pid), set()).add(int(said[1]))
    ranks = {process: next(iter(which)) for process, which in told.items() if len(which) == 1}
    return ranks if len(set(ranks.values())) == len(ranks) > 1 else {}


def _alternates(numbers: Sequence[int]) -> bool:
    counts = Counter(numbers)
    if len(counts) < 2 or set(counts) != set(range(len(counts))) or min(counts.values()) < 3:
        return False
    return sum(one != other for one, other in pairwise(numbers)) >= 2 * len(counts)
