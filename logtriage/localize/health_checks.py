"""A job of which, from some moment on, nothing is heard but the answers of its servers to those who ask.

Of such a job no step may ever be reported: its servers came up and answer that they are well, whoever should
send them work waits, and whoever looks on finds it running.
"""

from __future__ import annotations

from itertools import groupby

from logtriage.localize.onlookers import Sight
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark

LEAST_CHECKS = 20
LEAST_DATED = 5
LONG_SECONDS = 3600.0  # where nobody was seen to look
LEAST_SECONDS = 1800.0  # a compilation, or the first batch of a large model, can take minutes
LINES_BEHIND = 40  # of a log, in which somebody noted what he saw

_CHECK = regex(
    r"(?i)\"(?:GET|HEAD|POST) /[\w./-]{0,80}\b(?:health(?:z|[\w-]{0,12})?|ping|livez?|liveness|readyz?"
    r"|readiness)\b[^\"\s]{0,40} HTTP/[\d.]{1,3}\"\s+(?:- )?200\b"
)
_RUNNING = regex(r"\bRUNNING\b|(?i:\bstill (?:running|alive)\b)")


def only_checked(scene: Scene) -> Sight | None:
    """What shows, behind a long stretch of answered health checks alone, that the job was still running."""
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        lines = [line for line in reading.lines if line.text.strip()]
        runs = [(is_check, list(own)) for is_check, own in groupby(lines, _is_check)]
        at = max((number for number, (is_check, _) in enumerate(runs) if is_check), default=None)
        if at is None or at < len(runs) - 2:
            continue
        checks = runs[at][1]
        behind = runs[at + 1][1] if at + 1 < len(runs) else []
        times = [line.time for line in checks if line.time is not None]
        if sum(map(_times, checks)) < LEAST_CHECKS or len(behind) > LINES_BEHIND or len(times) < LEAST_DATED:
            continue
        silence = times[-1] - times[0]
        seen = next((line for line in behind if _RUNNING.search(line.text[:400])), None)
        has_loaded = next(iter(scene.marked(Mark.RESUMED)), None) is not None
        if seen is None and not behind and silence >= LONG_SECONDS and has_loaded:
            seen = checks[-1]  # of a job that has loaded what it trains, and whose servers lived on
        if seen is None or silence < LEAST_SECONDS or _others_wrote(scene, reading.source.file, times[0]):
            continue
        return Sight(seen, f"for {silence:.0f} s nothing came but health checks, and no step ever")
    return None


# What Ray puts behind a line that many of its processes wrote.
_REPEATED = regex(r"\[repeated (\d{1,6})x across cluster\]")


def _times(line: Line) -> int:
    """How many writers' lines a line stands for."""
    repeated = _REPEATED.search(line.text[:1000]) if "[repeated " in line.text else None
    return 1 + int(repeated[1]) if repeated is not None else 1


def _is_check(line: Line) -> bool:
    return "HTTP/" in line.text and _CHECK.search(line.text[:1000]) is not None


def _others_wrote(scene: Scene, file: str, since: float) -> bool:
    return any(
        line.time is not None and line.time > since
        for reading in scene.readings
        if reading.source.role in JOB_ROLES and reading.source.file != file
        for line in reading.lines
    )
