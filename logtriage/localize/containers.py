"""Hosts of containers, as who started them tells: their own lines bear the container's id alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ahocorasick_rs import AhoCorasick

from logtriage.intake.reading import Reading
from logtriage.localize.rosters import HOST_WORD
from logtriage.model import Line
from logtriage.regex import regex

# `container 4f2c81d0 on agent cn-3 exited with …`, `allocation 4f2c81d0-… placed on node cn-3`; YARN's
# `container_17_0001_01_000003 on host cn-3`.
_PLACED = regex(
    r"(?i)\b(?:(?:container|allocation|alloc|task)s?(?: ?id)?[ =:\"']{1,3})?"
    r"(?P<id>(?:container_[\w]{6,60}|(?=[a-f-]{0,36}[0-9])(?=[0-9-]{0,36}[a-f])[0-9a-f-]{6,64}))"
    r"[\"')]{0,2},? "
    r"(?:[\w-]{1,20} ){0,3}?(?:on|at|@) (?:(?:the )?(?:agent|node|host|machine|worker|client)[ =:]{1,2})"
    rf"[\"']?(?P<host>{HOST_WORD})(?![\w.-])"
)
_PLACES = AhoCorasick(
    [" agent ", " node ", " host ", " machine ", " worker ", " client ", " node:", " host:", " host="]
)
_WORD = regex(r"container_\w{6,60}|(?<![\w-])[0-9a-f][0-9a-f-]{5,63}(?![\w-])")
SHORTEST = 6  # characters of an id that is cut short
LABEL_WIDTH = 120  # of a line, where a label may stand


@dataclass(frozen=True, slots=True)
class Containers:
    """Hosts by the id of a container, as it is told with its place."""

    hosts: dict[str, str] = field(default_factory=dict)

    def host(self, line: Line) -> str | None:
        """The host of the container whose id stands in front of a line; ids may be cut short."""
        if not self.hosts:
            return None
        label = line.text[: min(LABEL_WIDTH, max(0, line.text.find(line.message[:40])) or LABEL_WIDTH)]
        for word in _WORD.findall(label):
            for known, host in self.hosts.items():
                short = min(len(known), len(word))
                if short >= SHORTEST and known[:short] == word[:short]:
                    return host
        return None


def placed_containers(readings: Sequence[Reading]) -> Containers:
    """Where containers ran, by the lines of whoever started them."""
    return Containers(dict(_placed(line for reading in readings for line in reading.lines)))


def _placed(lines: Iterable[Line]) -> Iterable[tuple[str, str]]:
    for line in lines:
        text = line.text[:1000]
        if _PLACES.find_matches_as_indexes(text) and (found := _PLACED.search(text)) is not None:
            yield found["id"].lower(), found["host"]
