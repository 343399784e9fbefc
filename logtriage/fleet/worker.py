"""A process that triages one job after another: `python -m logtriage.fleet.worker`.

It reads a task a line (JSON) from standard input and answers with a line (JSON) on what was standard output.
It is a process of its own because logs are hostile: what crashes, hangs or grows there ends no one else.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logtriage.mining.survey import Elsewhere


def main() -> None:
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        os.dup2(2, 1)  # whatever a library prints must not stand among the answers
        tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
        while True:
            answers.write(json.dumps(_answer(json.loads(tasks.get()))) + "\n")
            answers.flush()


def _listen(tasks: queue.SimpleQueue[str]) -> None:
    """Hand on what is asked; when whoever asks is gone, end at once, whatever is being done."""
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


def _answer(task: dict[str, Any]) -> dict[str, Any]:
    from logtriage import pipeline
    from logtriage.intake.folder import NothingReadable

    try:
        with _elsewhere(task["scheduler"]) as elsewhere:
            verdict = pipeline.triage(
                task["paths"], offline=task["offline"], workers=task["processes"], elsewhere=elsewhere
            )
        return {"verdict": verdict.to_dict()}
    except NothingReadable as fault:
        return {"unreadable": str(fault)}
    except Exception as fault:
        return {"fault": f"{type(fault).__name__}: {fault}"}


def _elsewhere(scheduler: str) -> AbstractContextManager[Elsewhere | None]:
    if not scheduler:
        return nullcontext()
    from logtriage.fleet.cluster import read_on

    return read_on(scheduler)


if __name__ == "__main__":
    main()
