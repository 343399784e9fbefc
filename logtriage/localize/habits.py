"""Kinds of complaints that the job lived with: long before its end, or in earlier good runs.

L4 (FSE'25) takes what good runs also wrote for harmless, whatever it says. Without such runs, the part of
this one that went on for long serves: the close reading skips most of it, but the pass kept of each file the
first line of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from logtriage.intake.lines import LineReader
from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.mining.kinds import keyed, lines_of
from logtriage.mining.summary import Key, Summary


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of lines of each file, and those of earlier good runs (none where there are none)."""

    of_files: Mapping[str, Summary] = field(default_factory=dict)
    of_good_runs: Collection[Key] = frozenset()


NO_KINDS = Kinds()


def lived_with(
    candidate: Candidate, scene: Scene, kinds: Kinds, went_on: Callable[[float], bool], enough: int
) -> int:
    """In how many files a line of its kind came before the job went on for long, `enough` at most.

    So many as are enough where good runs wrote such lines. `went_on` tells it of a time.
    """
    found = [key for key, _ in keyed(lines_of(candidate.line.text.encode("utf-8", "replace") + b"\n"))]
    if not found:
        return 0
    if found[0] in kinds.of_good_runs:
        return enough
    times = 0
    for reading in scene.readings:
        summary = kinds.of_files.get(reading.source.file)
        count = summary.keys.get(found[0]) if summary is not None else None
        if count is not None and reading.source.role is candidate.source_role and times < enough:
            time = LineReader(reading.source, reading.layout).read(count.sample, *count.first).time
            times += time is not None and went_on(time)
    return times
