"""The pass over the pieces of a file: kinds of lines counted, lines that may answer a rule matched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from logtriage.intake.lines import plain, segments
from logtriage.mining.calls import MOST_REMEMBERED, Calls
from logtriage.mining.kinds import Lines, keyed, lines_of
from logtriage.mining.summary import KEYS_BYTES, STEPS_FIRST, STEPS_LAST, Ends, KeyCount, Place, Seen, Summary
from logtriage.model import SourceRole
from logtriage.rulebank.database import Databases, is_loud
from logtriage.rulebank.matcher import Hit, Matcher

MANY = 512  # lines of one blur that are told apart by their words and numbers before they are matched
MOST_MATCHED = 8_000  # different lines with the same rules' keywords that are matched in a piece
ONE_RANK_STEPS = 4  # lines that show progress, of one kind, at either end of a file that one rank wrote
SAMPLE_BYTES = 2_048
STEP_BYTES = 16 << 10  # of a line that may show progress, what is kept until its file is read

# What differs between two lines of a storm that say the same: the time.
_TIME = re.compile(
    rb"\b\d{4}-\d\d-\d\d[T ]?|\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?![:\w])"
    rb"|\[ *\d+\.\d{6}\]|\b1[6-9]\d{8}(?:\.\d+)?\b"
)


class Scanner:
    """Makes summaries, and remembers what texts call, across pieces and files.

    With `databases` (see there) much is read faster; what is found is the same.
    """

    def __init__(self, matcher: Matcher, databases: Sequence[Databases] = ()) -> None:
        self._matcher = matcher
        self._calls = Calls(matcher, databases)
        self._marked: dict[bytes, bool] = {}

    def scan_piece(
        self, data: bytes, where: SourceRole, *, elided: int = 0, one_rank: bool = False
    ) -> Summary:
        """The summary of a piece that begins at a line's start.

        `elided` bytes were left out of the middle of a piece that is one very long line. Where `one_rank`
        wrote the file, few lines of each kind tell how far it came.
        """
        summary = Summary(bytes=len(data) + elided)
        if not data:
            return summary
        lines = lines_of(data)
        summary.lines = len(lines) - (not data.endswith(b"\n"))

        def place(index: int) -> Place:
            return index + 1, int(lines.starts[index])

        marked: dict[int, bytes] = {}
        for key, kind in keyed(lines):
            known = summary.keys.get(key)
            if known is not None:
                known.count += kind.count
                known.first = min(known.first, place(kind.first))
                known.last = max(known.last, place(kind.last))
            else:
                sample = lines.line(kind.first)[:SAMPLE_BYTES]
                summary.keep(key, KeyCount(kind.count, place(kind.first), place(kind.last), sample))
            if self._is_marked(key, lines, kind.first):
                marked[int(lines.codes[kind.first])] = key
        steps = (ONE_RANK_STEPS, ONE_RANK_STEPS) if one_rank else (STEPS_FIRST, STEPS_LAST)
        self._keep_steps(lines, marked, summary, *steps)
        hits: list[tuple[int, Hit]] = []
        for same in self._alike(lines, self._calls.loud(lines), summary):
            answers = self._match(lines.line(same[0]), where, self._calls.telling)
            found = [hit for hit in answers if is_loud(hit.rule)]
            hits += [(index, hit) for hit in found for index in same]
        hits.sort(key=lambda item: item[0])
        for index, hit in hits:
            summary.saw(hit, place(index))
        return summary

    def _is_marked(self, key: bytes, lines: Lines, index: int) -> bool:
        """Whether lines of this key may mark progress; one line of a key speaks for all."""
        known = self._marked.get(key)
        if known is None:
            if len(self._marked) >= MOST_REMEMBERED:
                self._marked.clear()
            known = self._marked[key] = self._calls.marked(lines.line(index))
        return known

    def _keep_steps(
        self, lines: Lines, marked: Mapping[int, bytes], summary: Summary, most_first: int, most_last: int
    ) -> None:
        """Of each key, whose lines may have several blurs, the first and the last lines."""
        counts: Counter[bytes] = Counter()
        named: dict[bytes, list[int]] = {}
        for code, indices in lines.ends_of(marked, most_first, most_last).items():
            named.setdefault(marked[code], []).extend(indices)
            counts[marked[code]] += lines.kinds[code].count
        for key, indices in named.items():
            indices.sort()
            if len(indices) > most_first + most_last:
                indices = indices[:most_first] + indices[-most_last:]
            seen = [
                ((index + 1, int(lines.starts[index])), lines.line(index)[:STEP_BYTES]) for index in indices
            ]
            summary.steps[key] = Ends(counts[key], seen[:most_first], seen[most_first:])

    def _alike(self, lines: Lines, indices: Sequence[int], summary: Summary) -> list[list[int]]:
        """The lines in groups that a rule answers alike: one by one, those of a storm by what they say.

        Where there are too many groups, those of which the same keywords were seen often are not matched:
        so a rare complaint is not lost among others.
        """
        by_code: dict[int, list[int]] = {}
        for index in indices:
            by_code.setdefault(int(lines.codes[index]), []).append(index)
        groups: list[list[int]] = []
        for members in by_code.values():
            if len(members) <= MANY:
                groups += [[index] for index in members]
                continue
            said: dict[bytes, list[int]] = {}
            for index in members:
                said.setdefault(_TIME.sub(b"", lines.line(index)), []).append(index)
            groups += said.values()
        if len(groups) <= MOST_MATCHED:
            return groups
        matched: Counter[tuple[int, ...]] = Counter()
        chosen = []
        for same in groups:
            rules = self._calls.rules(lines.line(same[0]))
            matched[rules] += 1
            if matched[rules] <= MOST_MATCHED:
                chosen.append(same)
            else:
                summary.unmatched += len(same)
        return chosen

    def finished(
        self, summary: Summary, where: SourceRole, *, one_rank: bool = False, keys_bytes: int = KEYS_BYTES
    ) -> Summary:
        """The summary of a whole file, once all its pieces are joined: what shows progress is matched now.

        `keys_bytes` is what its shapes may take from now on, beside those of all other files; `one_rank` as
        for `scan_piece`.
        """
        summary.keep_most(keys_bytes)
        for place, line in sorted(
            seen
            for ends in summary.steps.values()
            for seen in (_few(ends.kept()) if one_rank else ends.kept())
        ):
            for hit in self._match(line, where, self._calls.progress):
                summary.saw(hit, place)
        summary.steps.clear()
        summary.keys = dict(sorted(summary.keys.items(), key=lambda item: item[1].first))
        return summary

    def _match(self, line: bytes, where: SourceRole, among: Collection[int]) -> list[Hit]:
        return self._matcher.match_segments(segments(plain(line)), where, among)


def _few(seen: list[Seen]) -> list[Seen]:
    return seen if len(seen) <= 2 * ONE_RANK_STEPS else seen[:ONE_RANK_STEPS] + seen[-ONE_RANK_STEPS:]
