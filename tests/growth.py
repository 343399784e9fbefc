"""How the cost of something grows with its size: true on a slow or busy machine as on a fast one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")

TIMES_LARGER = 8
# Costs that grow with the size grow by 8, those with its square by 64. A fixed cost beside them only helps.
MOST_GROWTH = 24
LEAST_SECONDS = 0.001  # below it the clock and caches say more than the work
ATTEMPTS = 3
# What never ends takes longer than this anywhere, what is in order takes well below a second.
CATASTROPHE = 100.0


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time of this process, so that other processes do not count."""
    began = time.process_time()
    work()
    return time.process_time() - began


def grows_evenly(made: Callable[[int], Made], work: Callable[[Made], object], size: int) -> bool:
    """Whether `work` on what is made eight times as large as `size` costs about eight times as much."""
    small, large = made(size), made(size * TIMES_LARGER)
    work(small)  # imports and compiled patterns are no cost of the size
    for _ in range(ATTEMPTS):
        few = min(cpu_seconds(lambda: work(small)) for _ in range(ATTEMPTS))
        if cpu_seconds(lambda: work(large)) <= MOST_GROWTH * max(few, LEAST_SECONDS):
            return True
    return False
