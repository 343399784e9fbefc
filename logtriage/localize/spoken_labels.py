"""Labels of any form in front of each line of a file of many ranks, whose ranks their own lines tell.

`[trainer-0-7/gpu-image-1] ` says nothing by itself, but the process behind it says which rank it is: NCCL
when it joins the communicator of all, PyTorch before what it complains of, and many a program in each
line that it writes. Where the numbers of labels and ranks keep one distance, it holds for labels that said
nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from logtriage.intake.lines import LineReader
from logtriage.intake.reading import Reading
from logtriage.localize.rosters import is_host
from logtriage.localize.writer_labels import host_labels
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

_LABEL = regex(
    r"(?:\[[^\[\]\n]{1,100}\]|\([^()\n]{1,100}\)|(?=[\w./-]{0,80}\d)[A-Za-z][\w./-]{1,80} ?\|"
    r"|(?P<host>[A-Za-z][\w.-]{0,80}\d[\w.-]{0,20})(?:[ :/] ?\d{1,5} ?[:|>)]|[/@#]\d{1,5})|\d{1,5} ?[:|>)]"
    r"|[<{(]\d{1,5}[>})]:?|(?=[^\s:]{0,80}\d)[A-Za-z][\w./@-]{1,80}(?:\[\d{1,10}\]|@\d{1,5}):) |\d{1,5}[|>]"
)
_NAMED = regex(r"\b(?:global_?)?rank[-_ =:]{0,2}(\d{1,6})\b", re.IGNORECASE)
_OF_A_NODE = regex(r", rank=\d{1,6}, pid=")  # SkyPilot's `(worker2, rank=2, pid=…)` counts nodes
_SAID = regex(r"(?:^|[\s<(\[])(?i:rank)[ =:-]{0,2}(\d{1,6})(?=[\s>)\],:;|]|$)")
_JOINED = regex(r"\bcomm 0x[0-9a-f]+ rank (\d{1,6}) nranks (\d{1,6})\b")
_OWN = regex(r"\[rank(\d{1,6})\]:")
_LAST_NUMBER = regex(r"(\d{1,5})\D{0,4}$")
_FIRST_NUMBER = regex(r"(\d{1,5})")  # behind which that of the process may stand: `loop@3[4117]: `
SAMPLE = 2_000  # lines
LEAST_LINES = 3  # of each label
MOST_RANKED = 0.25  # share of the lines whose ranks are known without the label …
LABELLED = 0.6  # … and that of those with a label
MOST_LABELS = 64  # of one file: who writes a time in brackets has more


def with_spoken_ranks(reading: Reading, known: Mapping[str, int] | None = None) -> Reading:
    """A reading whose labelled lines have the ranks of their labels, and are read anew behind them.

    `known` are those that other lines of the file told: a few windows may not tell them again.
    """
    ranks = known or _ranks_of_labels(reading)
    if not ranks:
        return reading
    reader = LineReader(reading.source, reading.layout)
    lines = tuple(_read_behind(line, ranks, reader) for line in reading.lines)
    return replace(reading, lines=lines, labelled=ranks)


def _read_behind(line: Line, ranks: Mapping[str, int], reader: LineReader) -> Line:
    label = _label(line)
    label = label if label in ranks else label.rstrip()  # an indented line behind `3>`
    if label not in ranks:
        return line
    behind = line.text[len(label) :].encode("utf-8", "replace")
    found = reader.read(behind, line.number, line.offset)
    pid = found.pid if found.pid is not None else line.pid  # which the label itself may tell
    named = _LABEL.match(label)
    host = named["host"] if named is not None and named["host"] and is_host(named["host"]) else None
    return replace(found, text=line.text, rank=ranks[label], host=found.host or line.host or host, pid=pid)


def _label(line: Line) -> str:
    found = _LABEL.match(line.text[:120])
    return found[0] if found is not None else ""


def _ranks_of_labels(reading: Reading) -> dict[str, int]:
    """Rank by label; empty where the file has none, or they do not tell several ranks apart."""
    source = reading.source
    if source.role not in (SourceRole.MERGED, SourceRole.WORKER) or source.rank is not None:
        return {}
    lines = reading.lines
    sample = lines[:SAMPLE]
    ranked = sum(line.rank is not None for line in sample) > MOST_RANKED * len(sample)
    if ranked and not _say_otherwise(sample):
        return {}
    counts = Counter(map(_label, sample))
    counts.pop("", None)
    for label in [each for each in counts if each[-1] == " " and each[:-1] in counts]:
        # `3>` before indented words, or `3| ` of which a line without words keeps the bar alone
        rare, usual = sorted((label, label[:-1]), key=lambda each: counts[each])
        counts[usual] += counts.pop(rare)
    labels = {label for label, times in counts.items() if times >= LEAST_LINES}
    if not 1 < len(labels) <= MOST_LABELS or sum(counts[each] for each in labels) < LABELLED * len(sample):
        return {}
    if host_labels(lines).tells_ranks:  # known without this
        return {}
    told = _told(labels, lines)
    found = {label: claimed.pop() for label, claimed in told.items() if len(claimed) == 1}
    found |= _at_one_distance(labels, found)
    return found if len(set(found.values())) == len(found) > 1 else {}


def _told(labels: Iterable[str], lines: Sequence[Line]) -> dict[str, set[int]]:
    """What each label, or what stands behind it, says of its rank."""
    told: dict[str, set[int]] = {
        label: {int(named[1])}
        for label in labels
        if (named := _NAMED.search(label)) is not None and _OF_A_NODE.search(label) is None
    }
    if told:
        return told
    joined: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))  # by size of communicator
    own: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        text = line.text[:600]
        if "nranks" in text and (of_nccl := _JOINED.search(text)) is not None:
            joined[int(of_nccl[2])][_label(line)].add(int(of_nccl[1]))
        elif (
            "[rank" in text and (label := _label(line)) and (said := _OWN.match(text, len(label))) is not None
        ):
            own[label].add(int(said[1]))
    for label, ranks in joined[max(joined)].items() if joined else ():
        own[label] |= ranks
    return own or _said_again_and_again(labels, lines)


def _say_otherwise(lines: Sequence[Line]) -> bool:
    """Whether the numbers of labels that were read as ranks are those of a node's own processes.

    What stands behind them says other ranks, again and again.
    """
    said = [
        int(found[1]) != line.rank
        for line in lines
        if line.rank is not None
        and (label := _label(line))
        and (last := _LAST_NUMBER.search(label)) is not None
        and int(last[1]) == line.rank
        and (found := _SAID.search(line.text[len(label) : 200])) is not None
    ]
    return sum(said) >= SAID_AGAIN and sum(said) * 2 > len(said)


SAID_AGAIN = 5  # lines of a label that all name one rank


def _said_again_and_again(labels: Iterable[str], lines: Sequence[Line]) -> dict[str, set[int]]:
    """The ranks that stand first in the words behind labels, where each label has one of its own."""
    told: dict[str, Counter[int]] = {label: Counter() for label in labels}
    for line in lines[:SAMPLE]:
        if (label := _label(line)) in told and (said := _SAID.search(line.text[len(label) : 200])):
            told[label][int(said[1])] += 1
    of_one = {label: set(counts) for label, counts in told.items() if sum(counts.values()) >= SAID_AGAIN}
    return of_one if all(len(ranks) == 1 for ranks in of_one.values()) else {}


def _at_one_distance(labels: Iterable[str], known: dict[str, int]) -> dict[str, int]:
    """The ranks of the other labels, where all known ones are as far from their last, or first, numbers."""
    labels = tuple(labels)
    for form in (_LAST_NUMBER, _FIRST_NUMBER):
        numbers = {label: int(told[1]) for label in labels if (told := form.search(label)) is not None}
        distances = {known[label] - number for label, number in numbers.items() if label in known}
        if len(distances) == 1 and sum(label in known for label in numbers) > 1 and min(distances) >= 0:
            distance = distances.pop()
            return {label: number + distance for label, number in numbers.items() if label not in known}
    return {}
