"""How long the stages of a triage take."""

from __future__ import annotations

import time


class StageClock:
    """Seconds that each stage of a triage took, from one lap to the next."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.stages[stage] = round(now - self._last, 4)
        self._last = now
