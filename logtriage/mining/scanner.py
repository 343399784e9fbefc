"""The pass over the pieces of a file: kinds of lines counted, lines that may answer a rule matched."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from logtriage.intake.lines import plain, segments
from logtriage.mining.calls import Calls
from logtriage.mining.kinds import Lines, Sliced, keyed, lines_of
from logtriage.mining.places import places
from logtriage.mining.slices import shift_of
from logtriage.mining.storms import saying_alike
from logtriage.mining.summary import (
    KEPT_FIRST,
    KEPT_LAST,
    KEYS_BYTES,
    STEPS_FIRST,
    STEPS_LAST,
    Ends,
    KeyCount,
    Place,
    Seen,
    Summary,
)
from logtriage.model import SourceRole
from logtriage.rulebank.database import Databases, is_loud
from logtriage.rulebank.matcher import Hit, Matcher
from logtriage.rulebank.rule import Role, Strength

MANY = 512  # lines of one blur that are told apart by their words and numbers before they are matched
MOST_MATCHED = 8_000  # different lines with the same rules' keywords that are matched in a piece
ONE_RANK_STEPS = 4  # lines that show progress, of one kind, at either end of a file that one rank wrote
SAMPLE_BYTES = 2_048
STEP_BYTES = 16 << 10  # of a line that may show progress, what is kept until its file is read


class Scanner:
    """Makes summaries, and remembers what texts call, across pieces and files.

    With `databases` (see there) much is read faster, and `in_bulk` (see `lines_of`) again; what is found is
    the same.
    """

    def __init__(
        self, matcher: Matcher, databases: Databases | None = None, *, in_bulk: bool = False
    ) -> None:
        self._in_bulk = in_bulk
        self._matcher = matcher
        self._by_id = {rule.id: rule for rule in matcher.bank.rules}
        self.sure = frozenset(
            rule.id
            for rule in matcher.bank.rules
            if rule.role is Role.CAUSE and rule.strength is Strength.DEFINITE
        )
        self._calls = Calls(matcher, databases)

    def scan_piece(
        self, data: bytes, where: SourceRole, *, offset: int = 0, elided: int = 0, one_rank: bool = False
    ) -> Summary:
        """The summary of a piece that begins at a line's start, and at this byte of its file.

        `elided` bytes were left out of the middle of a piece that is one very long line. Where `one_rank`
        wrote the file, few lines of each kind tell how far it came.
        """
        if not data:
            return Summary()
        size = len(data) + elided
        summary = Summary(bytes=size, shift=shift_of(offset + size))
        lines = lines_of(data, Sliced(offset, summary.shift), in_bulk=self._in_bulk)
        summary.lines = len(lines) - (not data.endswith(b"\n"))

        keys: dict[int, bytes] = {}
        for key, kind in keyed(lines):
            first, last = lines.place(kind.first), lines.place(kind.last)
            known = summary.keys.get(key)
            if known is not None:
                known.count += kind.count
                if first < known.first:
                    summary.keys_bytes -= len(known.sample)
                    known.first, known.sample = first, lines.line(kind.first)[:SAMPLE_BYTES]
                    summary.keys_bytes += len(known.sample)
                known.last = max(known.last, last)
                known.slices += kind.slices
            else:
                sample = lines.line(kind.first)[:SAMPLE_BYTES]
                summary.keep(key, KeyCount(kind.count, first, last, sample, kind.slices))
            keys[int(lines.codes[kind.first])] = key
        summary.left_out += len(lines) - sum(kind.count for kind in lines.kinds.values())
        # Of the blurs of one key some may show progress: its ends are looked for among them all.
        progress = {keys[code] for code in self._calls.marked(lines) if code in keys}
        marked = {code: key for code, key in keys.items() if key in progress}
        steps = (ONE_RANK_STEPS, ONE_RANK_STEPS) if one_rank else (STEPS_FIRST, STEPS_LAST)
        self._keep_steps(lines, marked, summary, *steps)
        self._keep_hits(lines, where, summary)
        return summary

    def _keep_hits(self, lines: Lines, where: SourceRole, summary: Summary) -> None:
        """What causes and symptoms match; of one hit the places come in order."""
        hits: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Hit, list[Sequence[int]]]] = {}
        for same in self._alike(lines, self._calls.loud(lines), summary):
            for hit in self._match(lines.line(same[0]), where, self._calls.telling):
                if is_loud(hit.rule):
                    hits.setdefault((hit.rule.id, hit.captures), (hit, []))[1].append(same)
        for hit, groups in sorted(hits.values(), key=lambda item: min(same[0] for same in item[1])):
            ends = _ends_of(groups)
            first, last = ([lines.place(index) for index in part] for part in (ends.first, ends.last))
            summary.saw_all(hit, Ends(ends.count, first, last))

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
            seen = [(lines.place(index), lines.line(index)[:STEP_BYTES]) for index in indices]
            summary.steps[key] = Ends(counts[key], seen[:most_first], seen[most_first:])

    def _alike(
        self, lines: Lines, by_code: Mapping[int, Sequence[int]], summary: Summary
    ) -> list[Sequence[int]]:
        """The lines in groups that a rule answers alike: one by one, those of a storm by what they say.

        Where there are too many groups, those of which the same keywords were seen often are not matched:
        so a rare complaint is not lost among others.
        """
        groups: list[tuple[int, Sequence[int]]] = []
        for code, members in by_code.items():
            alike = saying_alike(lines, members) if len(members) > MANY else [[index] for index in members]
            groups += ((code, same) for same in alike)
        if len(groups) <= MOST_MATCHED:
            return [same for _, same in groups]
        matched: Counter[tuple[int, ...]] = Counter()
        called: dict[int, tuple[int, ...]] = {}
        chosen = []
        for code, same in groups:
            if code not in called and len(called) < MOST_MATCHED:
                called[code] = self._calls.rules(lines.line(same[0]))
            rules = called.get(code, ())
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

    def places(self, summary: Summary) -> tuple[Place, ...]:
        """The places of a file that are worth reading closely, as far as it tells by itself."""
        return places(summary, self._by_id)

    def _match(self, line: bytes, where: SourceRole, among: Collection[int]) -> list[Hit]:
        return self._matcher.match_segments(segments(plain(line)), where, among)


def _few(seen: list[Seen]) -> list[Seen]:
    return seen if len(seen) <= 2 * ONE_RANK_STEPS else seen[:ONE_RANK_STEPS] + seen[-ONE_RANK_STEPS:]


def _ends_of(groups: Sequence[Sequence[int]]) -> Ends[int]:
    """The first and last of the indices of all groups, each of which is in order."""
    count = sum(map(len, groups))
    ends = (part for same in groups for part in (same[:KEPT_FIRST], same[-KEPT_LAST:]))
    kept = sorted(set(itertools.chain.from_iterable(ends)))
    beyond = min(KEPT_LAST, max(0, count - KEPT_FIRST))
    return Ends(count, kept[:KEPT_FIRST], kept[len(kept) - beyond :])
