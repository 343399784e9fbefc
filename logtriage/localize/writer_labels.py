"""Labels in front of each line: `[w-3]`, `[3/8]`, `trainer/3` number the writers, others name hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from logtriage.localize.rosters import is_host
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


_HOST_LABEL = re.compile(
    r"[\[(<]?((?:\d{1,3}\.){3}\d{1,3}|(?=[\w.-]{0,100}\d)[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,62}){0,6})"
    r"(?:[\])>]|:| \||(?= ))(?= )"
)


def host_labels(lines: Sequence[Line]) -> dict[str, str]:
    """Host by word, where most lines of a file begin with words of one row: `10.0.0.3 [1] …`, `| gpu-07 …`.

    Of a word with dots the part that differs is the host: `bench.c3.nolog` and `bench.c4.nolog`.
    """
    messages = [line.message[:120] for line in lines[:SAMPLE] if line.host is None]
    words = [found[1] for text in messages if (found := _HOST_LABEL.match(text)) and is_host(found[1])]
    rows = Counter(re.sub(r"\d+", "#", word) for word in words)
    if not rows or len(words) * 2 < len(messages):
        return {}
    row, _ = rows.most_common(1)[0]
    words = [word for word in words if re.sub(r"\d+", "#", word) == row]
    counts = Counter(words)
    switches = sum(one != other for one, other in pairwise(words))
    if len(words) * 2 < len(messages) or min(counts.values()) < 3 or not 2 <= len(counts) <= switches // 2:
        return {}
    if row == "#.#.#.#":
        return {word: word for word in counts}
    parts = list(zip(*(word.split(".") for word in counts), strict=True))
    differing = [at for at, part in enumerate(parts) if len(set(part)) > 1]
    return {word: word.split(".")[differing[0]] for word in counts} if len(differing) == 1 else {}


def labelled_host(line: Line, hosts: Mapping[str, str]) -> str | None:
    """The host that a line's own label names."""
    found = _HOST_LABEL.match(line.message[:120]) if hosts and line.host is None else None
    return hosts.get(found[1]) if found else None


_RANK_BEHIND = re.compile(r"(?: \[[a-z]{3,10}\])? \[[Rr]ank[ =:-]?(\d{1,6})\]")


def labelled_rank(line: Line, hosts: Mapping[str, str]) -> int | None:
    """The rank in brackets behind the label that names a line's host."""
    found = _HOST_LABEL.match(line.message[:120]) if hosts and line.host is None else None
    behind = _RANK_BEHIND.match(line.message[:160], found.end()) if found and found[1] in hosts else None
    return int(behind[1]) if behind else None
