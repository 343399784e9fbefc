"""Numbers in lines that tell which rank wrote them, whatever word stands before them.

`[cn-3 member 17] …` says nothing to who does not know that program's words. But a number that takes the
values 16 to 23 in the file of one machine, 24 to 31 in that of the next, and all values up to 63 in all of
them, counts the job's ranks: nothing else is shared out to machines so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from logtriage.intake.reading import Reading
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

_NUMBER = regex(r"(?<![\w.-])([A-Za-z][A-Za-z_]{0,20}(?:\"?[-_ =:#]{1,2}|\[))(\d{1,5})(?=[\])}>,:;| ]|$)")
WIDTH = 140  # characters of a line in which its writer's number may stand
SAMPLE = 240  # lines of a file
SHARE = 0.2  # of these have the number
LEAST_FILES = 2
COMPLETE = 0.75  # of the numbers up to the largest were seen
MOST_RANKS = 64  # of one machine


def numbered_writers(readings: Sequence[Reading]) -> dict[str, re.Pattern[str]]:
    """By file the pattern of what begins each line up to its writer's number, which is its group."""
    values: dict[str, dict[str, Counter[int]]] = defaultdict(dict)
    files = [each for each in readings if _is_of_nobody(each)]
    if len(files) < LEAST_FILES:
        return {}
    for reading in files:
        lines = _sample(reading.lines)
        found: dict[str, Counter[int]] = defaultdict(Counter)
        for line in lines:
            for word, number in {(each[1], int(each[2])) for each in _NUMBER.finditer(line.text[:WIDTH])}:
                found[word][number] += 1
        for word, counts in found.items():
            if counts.total() >= SHARE * len(lines):
                values[word][reading.source.file] = counts
    words = {word: set(of_files) for word, of_files in values.items() if _counts_ranks(of_files)}
    forms: dict[frozenset[str], re.Pattern[str]] = {}
    told: dict[str, re.Pattern[str]] = {}
    for file in set(chain.from_iterable(words.values())):
        those = frozenset(word for word, of_files in words.items() if file in of_files)
        if those not in forms:
            either = "|".join(map(re.escape, sorted(those)))
            forms[those] = re.compile(
                rf".{{0,{WIDTH - 40}}}?(?<![\w.-])(?:{either})(\d{{1,5}})(?=[\])}}>,:;| ]|$)"
            )
        told[file] = forms[those]
    return told


def _is_of_nobody(reading: Reading) -> bool:
    """Whether several ranks may have written a file that says of few lines whose they are."""
    if reading.source.role is not SourceRole.MERGED or reading.source.rank is not None:
        return False
    sample = _sample(reading.lines)
    return len(sample) > 8 and sum(line.rank is None for line in sample) * 2 > len(sample)


def _sample(lines: Sequence[Line]) -> Sequence[Line]:
    return lines[:: max(1, len(lines) // SAMPLE)]


def _counts_ranks(of_files: Mapping[str, Counter[int]]) -> bool:
    """Whether each file has the numbers of another block of one size, and all together those from 0."""
    if len(of_files) < LEAST_FILES:
        return False
    numbers = [set(counts) for counts in of_files.values()]
    every = set().union(*numbers)
    if len(every) < sum(map(len, numbers)) or max(map(len, numbers)) < 2:
        return False
    for size in range(max(map(len, numbers)), MOST_RANKS + 1):
        blocks = [{number // size for number in those} for those in numbers]
        if all(len(block) == 1 for block in blocks) and len(set().union(*blocks)) == len(blocks):
            return max(every) < size * len(numbers) and len(every) >= COMPLETE * size * len(numbers)
    return False
