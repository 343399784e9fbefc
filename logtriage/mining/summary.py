"""What one pass over a piece of a file finds, in a form that can be merged.

Line numbers and offsets are relative to the summary's own start and shifted when two neighbours are
joined, so that `append` is associative: it does not matter how a file was cut, or in which order its
pieces were read. The slices are those of the file from the outset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from logtriage.mining.slices import coarser
from logtriage.rulebank.matcher import Hit
from logtriage.rulebank.rule import Mark, Role

Key = bytes  # a line's shape: what is left without digits and the letters of hexadecimal numbers
Place = tuple[int, int]  # line (1-based) and byte offset, both relative to the summary's start

KEPT_FIRST = 256  # places kept of one rule with the same captures: enough for one line of each rank
KEPT_LAST = 64
STEPS_FIRST = 8  # of a shape that shows nothing but progress, the first lines of a file are matched …
STEPS_LAST = 64  # … and the last, enough for one of each rank
KEYS_BYTES = 24 << 20  # what the distinct shapes of one file may take; later new ones are counted as left out
_EACH_KEY = 400  # what a shape takes beside its own bytes and its sample's
MOST_CAPTURES = 4_000  # different captures of one rule that are told apart in a file

_Item = TypeVar("_Item")


@dataclass(slots=True)
class Ends(Generic[_Item]):
    """How many there were of something, and the first and last of them, in order."""

    count: int
    first: list[_Item]
    last: list[_Item]

    def kept(self) -> list[_Item]:
        return self.first + self.last

    def join(self, kept: Sequence[_Item], count: int, most_first: int, most_last: int) -> None:
        """Take up what another one, which follows, has kept of `count` items."""
        missing = max(0, most_first - len(self.first))
        self.first += kept[:missing]
        self.last += kept[missing:]
        del self.last[: max(0, len(self.last) - most_last)]
        self.count += count


@dataclass(slots=True)
class KeyCount:
    """How often a shape occurs, where first and last, one raw line of it (the first), and its slices.

    These are of the size that its summary says.
    """

    count: int
    first: Place
    last: Place
    sample: bytes
    slices: int


HitKey = tuple[str, tuple[tuple[str, str], ...]]  # rule id and, of causes and symptoms, captures
Seen = tuple[Place, bytes]  # a line with its place


@dataclass(slots=True)
class Summary:
    """One piece, several neighbouring pieces, or a whole file."""

    bytes: int = 0
    lines: int = 0
    shift: int = 0  # the slices of the file, as far as it was read, are of 2 ** shift bytes
    keys: dict[Key, KeyCount] = field(default_factory=dict)
    hits: dict[HitKey, Ends[Place]] = field(default_factory=dict)
    steps: dict[Key, Ends[Seen]] = field(default_factory=dict)  # lines that may show progress, unmatched
    keys_bytes: int = 0
    left_out: int = 0  # lines whose shape was not kept
    unmatched: int = 0  # lines that were not matched, since too many different ones called the same rules
    captured: Counter[str] = field(default_factory=Counter)  # different captures of each rule in `hits`

    def append(self, later: Summary) -> None:
        """Join the summary of what follows directly after this one."""

        def shifted(place: Place) -> Place:
            return place[0] + self.lines, place[1] + self.bytes

        if later.shift > self.shift:
            for mine in self.keys.values():
                mine.slices = coarser(mine.slices, later.shift - self.shift)
            self.shift = later.shift
        for key, count in later.keys.items():
            slices = coarser(count.slices, self.shift - later.shift)
            known = self.keys.get(key)
            if known is not None:
                known.count += count.count
                known.last = shifted(count.last)
                known.slices += slices
            else:
                first, last = shifted(count.first), shifted(count.last)
                self.keep(key, KeyCount(count.count, first, last, count.sample, slices))
        for hit_key, sightings in later.hits.items():
            places = [shifted(place) for place in sightings.kept()]
            self._sightings(hit_key).join(places, sightings.count, KEPT_FIRST, KEPT_LAST)
        for key, ends in later.steps.items():
            seen = [(shifted(place), line) for place, line in ends.kept()]
            self.steps.setdefault(key, Ends(0, [], [])).join(seen, ends.count, STEPS_FIRST, STEPS_LAST)
        self.left_out += later.left_out
        self.unmatched += later.unmatched
        self.lines += later.lines
        self.bytes += later.bytes

    def keep(self, key: Key, count: KeyCount, most: int = KEYS_BYTES) -> None:
        """Take up a shape that was not seen before, or, beyond `most` bytes, count its lines as left out."""
        size = len(key) + len(count.sample) + _EACH_KEY
        if self.keys_bytes + size <= most:
            self.keys_bytes += size
            self.keys[key] = count
        else:
            self.left_out += count.count

    def keep_most(self, most: int) -> None:
        """Of the shapes only so many bytes' worth, the commonest and of them the first."""
        if self.keys_bytes > most:
            ordered = sorted(self.keys.items(), key=lambda item: (-item[1].count, item[1].first))
            self.keys, self.keys_bytes = {}, 0
            for key, count in ordered:
                self.keep(key, count, most)

    def _sightings(self, hit_key: HitKey) -> Ends[Place]:
        """Those of a rule and its captures; beyond the bound, those of the rule alone."""
        known = self.hits.get(hit_key)
        if known is None:
            rule, captures = hit_key
            if captures and self.captured[rule] >= MOST_CAPTURES:
                hit_key = rule, ()
            elif captures:
                self.captured[rule] += 1
            known = self.hits.setdefault(hit_key, Ends(0, [], []))
        return known

    def saw(self, hit: Hit, place: Place) -> None:
        """Note where a rule was hit; captures tell causes and symptoms apart, and of ends how they ended."""
        self.saw_all(hit, Ends(1, [place], []))

    def saw_all(self, hit: Hit, places: Ends[Place]) -> None:
        """As `saw`, for places behind all that were seen of this hit."""
        captures: tuple[tuple[str, str], ...] = ()
        if hit.rule.role in (Role.CAUSE, Role.SYMPTOM):
            captures = hit.captures
        elif hit.rule.marks is Mark.EXIT:
            captures = tuple(each for each in hit.captures if each[0] in ("exitcode", "signal"))
        sightings = self._sightings((hit.rule.id, captures))
        sightings.join(places.kept(), places.count, KEPT_FIRST, KEPT_LAST)
