"""Whether a writer went on as ever: it wrote lines of the forms that it had written before, and of several.

No word tells that an error was survived where programs speak in words that no rule knows. But who died
writes nothing more, who hangs goes on with a pulse at most, and who lives goes on with all that it did.
"""

from __future__ import annotations

import bisect
from collections import Counter

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import SourceRole
from logtriage.rulebank.matcher import without_digits

FORM_WIDTH = 48  # of a message that tells its form
TWICE = 2  # a form that was written so often before is usual
LEAST_LINES = 20  # of usual forms …
LEAST_FORMS = 3  # … so many of them: a heartbeat is one …
LEAST_SECONDS = 5.0  # … and as long after


class UsualCourse:
    """The forms of what each writer wrote, in its order. A file is looked at when it is first asked for."""

    def __init__(self, scene: Scene, topology: Topology) -> None:
        self._readings = {reading.source.file: reading for reading in scene.readings}
        self._topology = topology
        self._files: dict[str, dict[int | None, list[tuple[int, float | None, str]]]] = {}

    def went_on(self, candidate: Candidate) -> bool:
        """Whether the writer of a candidate wrote on as before, and for long enough."""
        source = self._readings[candidate.line.file].source
        rank = self._topology.rank(candidate.line)
        if rank is None and source.role is not SourceRole.WORKER:
            return False
        last = candidate.record.lines[-1] if candidate.record is not None else candidate.line
        own = self._forms(candidate.line.file).get(rank, [])
        behind = bisect.bisect_right(own, last.number, key=lambda each: each[0])
        if len(own) - behind < LEAST_LINES:
            return False
        before = Counter(
            form
            for lines in self._forms(candidate.line.file).values()
            for number, _, form in lines
            if number < candidate.line.number
        )
        usual = [each for each in own[behind:] if before[each[2]] >= TWICE]
        if len(usual) < LEAST_LINES or len({form for _, _, form in usual}) < LEAST_FORMS:
            return False
        ended, time = usual[-1][1], candidate.line.time
        return ended is None or time is None or ended - time >= LEAST_SECONDS

    def _forms(self, file: str) -> dict[int | None, list[tuple[int, float | None, str]]]:
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = {}
            for line in self._readings[file].lines:
                form = without_digits(line.message[:FORM_WIDTH])
                known.setdefault(self._topology.rank(line), []).append((line.number, line.time, form))
        return known
