"""Damaged files that all ranks were just bringing back, each its own: a checkpoint, by whatever name.

Data is read all the time and by each rank when it needs some. What all do at one moment, for the only time,
before one of them finds the file damaged that bears its own number, is to resume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from logtriage.intake.reading import Reading
from logtriage.localize.candidates import Candidate
from logtriage.localize.habits import OF_RANKS, Kinds
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import key_of
from logtriage.mining.summary import Key
from logtriage.model import Line
from logtriage.regex import regex

BEFORE_SECONDS, AFTER_SECONDS = 60.0, 5.0
MOST = 0.8  # of the files of ranks have such a line
LEAST_FILES = 4
_NUMBERED = regex(r"/[\w.=-]{0,200}?(\d{1,6})(?:[_-]\d{1,4})?\.[A-Za-z]\w{0,15}\b")


def as_brought_back(
    candidates: Sequence[Candidate], scene: Scene, topology: Topology, kinds: Kinds
) -> list[Candidate]:
    """The candidates, with damaged data that was a rank's part of a checkpoint named as such."""
    return [
        replace(each, failure_type="checkpoint.corrupt")
        if each.failure_type == "data.corrupt"
        and not each.recovered
        and _is_of_its_rank(each, topology)
        and _all_began_alike(each, scene, kinds)
        else each
        for each in candidates
    ]


def _is_of_its_rank(candidate: Candidate, topology: Topology) -> bool:
    """Whether a file bears the number of who found it damaged, or of one on that machine."""
    told = candidate.record.raised[-1].message if candidate.record and candidate.record.raised else ""
    named = _NUMBERED.findall(f"{told[:2000]} {candidate.line.text[:2000]}")
    if not named or candidate.rank is not None:
        return bool(named) and int(named[-1]) == candidate.rank
    return candidate.host is not None and topology.host_of_rank.get(int(named[-1])) == candidate.host


def _all_began_alike(candidate: Candidate, scene: Scene, kinds: Kinds) -> bool:
    """Whether most files of ranks, its own among them, have a kind of lines just above, and nowhere else."""
    time = candidate.time
    readings = [each for each in scene.readings if each.source.role in OF_RANKS and each.lines]
    if time is None or len(readings) < LEAST_FILES:
        return False
    had: Counter[Key] = Counter()
    own: frozenset[Key] = frozenset()
    for reading in readings:
        found = _only_then(reading, time, kinds)
        had.update(found)
        if reading.source.file == candidate.line.file:
            own = found
    return any(had[key] >= MOST * len(readings) for key in own)


def _only_then(reading: Reading, time: float, kinds: Kinds) -> frozenset[Key]:
    """The kinds of lines that a file has about a time, and at no other."""
    summary = kinds.of_files.get(reading.source.file)
    if summary is None:
        return frozenset()
    near = [line for line in reading.lines if _is_near(line, time)]
    if not near:
        return frozenset()
    first, last = near[0].number, near[-1].number
    return frozenset(
        key
        for key in {key_of(line.text) for line in near}
        if key in summary.keys and first <= summary.keys[key].first[0] <= summary.keys[key].last[0] <= last
    )


def _is_near(line: Line, time: float) -> bool:
    at = line.time
    return at is not None and time - BEFORE_SECONDS <= at <= time + AFTER_SECONDS and bool(line.text.strip())
