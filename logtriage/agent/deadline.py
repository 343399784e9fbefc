"""Asking an endpoint that may never answer, for no longer than there is time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def answered_until(until: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
    """What `ask` returns by `until` (of time.monotonic); None where it raises or takes longer."""
    answers: list[T] = []
    done = threading.Event()

    def run() -> None:
        try:
            answers.append(asyncio.run(ask()))
        except Exception:  # whatever the endpoint does, there is then no answer
            answers.clear()
        finally:
            done.set()

    # A thread of its own: a name look-up that hangs cannot be cancelled, only left behind.
    try:
        threading.Thread(target=run, name="endpoint", daemon=True).start()
    except RuntimeError:  # no more threads
        return None
    done.wait(max(0.0, until - time.monotonic()))
    return next(iter(answers), None)
