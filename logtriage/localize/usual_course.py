"""Whether a writer went on as ever: it wrote lines of the forms that it had written before, and of several.

No word tells that an error was survived where programs speak in words that no rule knows. But who died
writes nothing more, who hangs goes on with a pulse at most, and who lives goes on with all that it did.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import Line, SourceRole
from logtriage.rulebank.matcher import without_digits

FORM_WIDTH = 48  # of a message that tells its form
LEAST_LINES = 20  # of usual forms …
LEAST_FORMS = 3  # … so many of them: a heartbeat is one …
LEAST_SECONDS = 5.0  # … and as long after
MOST_LINES = 400  # of a writer that are looked at behind a candidate


@dataclass(slots=True)
class _Forms:
    """The forms of a file's lines: by writer (number, time, form); since which line each is usual."""

    by_writer: dict[int | None, list[tuple[int, float | None, str]]] = field(default_factory=dict)
    usual_since: dict[str, int] = field(default_factory=dict)  # the line in which it came for the second time


class UsualCourse:
    """The forms of what each writer wrote. A file is looked at when it is first asked for."""

    def __init__(self, scene: Scene, topology: Topology) -> None:
        self._readings = {reading.source.file: reading for reading in scene.readings}
        self._topology = topology
        self._files: dict[str, _Forms] = {}

    def went_on(self, candidate: Candidate) -> bool:
        """Whether the writer of a candidate wrote on as before, and for long enough."""
        return self.went_on_behind(
            candidate.line, candidate.record.lines[-1] if candidate.record is not None else candidate.line
        )

    def went_on_behind(self, line: Line, last: Line) -> bool:
        """Whether the writer of a line wrote on behind the last of those that go with it."""
        rank = self._topology.rank(line)
        if rank is None and self._readings[line.file].source.role is not SourceRole.WORKER:
            return False
        forms = self._forms(line.file)
        own = forms.by_writer.get(rank, [])
        behind = bisect.bisect_right(own, last.number, key=lambda each: each[0])
        usual = [
            (time, form)
            for _, time, form in (*own[behind : behind + MOST_LINES], *own[behind + MOST_LINES :][-1:])
            if forms.usual_since.get(form, line.number) < line.number
        ]
        if len(usual) < LEAST_LINES or len({form for _, form in usual}) < LEAST_FORMS:
            return False
        ended = usual[-1][0]
        return ended is None or line.time is None or ended - line.time >= LEAST_SECONDS

    def _forms(self, file: str) -> _Forms:
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = _Forms()
            seen: set[str] = set()
            for line in self._readings[file].lines:
                form = without_digits(line.message[:FORM_WIDTH])
                known.by_writer.setdefault(self._topology.rank(line), []).append(
                    (line.number, line.time, form)
                )
                if form in seen:
                    known.usual_since.setdefault(form, line.number)
                seen.add(form)
        return known
