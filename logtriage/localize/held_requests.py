"""An engine that holds requests and generates nothing: whoever waits for its answers waits in vain.

vLLM reports every few seconds how many tokens it read and wrote since, and how many requests it runs. An
engine without work says that it runs none. One that runs some, and neither reads nor writes for long, stands
still, though nobody complains.
"""

from __future__ import annotations

from dataclasses import dataclass

from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

_REPORT = regex(
    r"Avg prompt throughput: (?P<read>\d{1,9}(?:\.\d{1,6})?) tokens/s, "
    r"Avg generation throughput: (?P<written>\d{1,9}(?:\.\d{1,6})?) tokens/s, "
    r"Running: (?P<running>\d{1,9}) reqs"
)
LEAST_REPORTS = 10
LEAST_SECONDS = 900.0  # the first request of a kind may have a kernel compiled for it
LINES_BEHIND = 5  # of others at the end of its log


@dataclass(frozen=True, slots=True)
class Held:
    """For how many seconds an engine has held requests at the end of its log, since and until when."""

    seconds: float
    since: Line
    last: Line
    requests: int


def held_requests(scene: Scene) -> Held | None:
    """The engine that stood still for longest at the end of its log; those of a job share its requests."""
    found: list[Held] = []
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        since = last = None
        count = requests = others = 0
        for line in reversed(reading.lines):
            report = _REPORT.search(line.text[:600]) if "generation throughput" in line.text else None
            if report is None:
                others += 1
                if count == 0 and others > LINES_BEHIND:
                    break
                continue
            idle = float(report["read"]) == float(report["written"]) == 0.0 and int(report["running"]) > 0
            if not idle or line.time is None:
                break
            count += 1
            since, last, requests = line, last or line, requests or int(report["running"])
        if since is None or last is None or count < LEAST_REPORTS:
            continue
        seconds = (last.time or 0.0) - (since.time or 0.0)
        if seconds >= LEAST_SECONDS:
            found.append(Held(seconds, since, last, requests))
    return max(found, key=lambda each: each.seconds, default=None)
