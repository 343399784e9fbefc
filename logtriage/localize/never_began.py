"""A job that came up, wrote alike on all its ranks, and then nothing, as somebody saw who looked much later.

No step was ever reported, so no usual time between steps tells how long is too long. What tells it is that
all of several ranks stopped at one point of their start, long before a clock beside the logs.
"""

from __future__ import annotations

from dataclasses import dataclass

from logtriage.localize.frozen import is_zone, naive, told_now
from logtriage.localize.onlookers import GLANCE_LINES, LATER_SECONDS, running
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

IDLE_SECONDS = (
    900.0  # where idle GPUs are shown as well: neither a compilation nor a load from disk has begun
)
LEAST_RANKS = 2
APART_SECONDS = 120.0  # between the last lines of ranks that came to one point
_PROMPT = regex(r"^(?:\[?[\w.-]{1,40}@[\w.-]{1,80}[^\]$#]{0,60}\]?)?\$ \S")
# A row of `nvidia-smi --query-gpu=… --format=csv`, or of its table, with its load and the memory in use.
_GPU_LOAD = regex(r"(?<![\d.])(?P<busy>\d{1,3}) ?%")
_GPU_MEMORY = regex(r"(?<![\d.])(?P<mib>\d{1,7}) ?MiB")
LEAST_MIB = 100  # that a process which only opened the GPU holds


@dataclass(frozen=True, slots=True)
class Standstill:
    """The last line of the job, where somebody saw that nothing more had come, and why it shows that."""

    last: Line
    seen: Line
    why: str


def never_began(scene: Scene) -> Standstill | None:
    """What shows that all ranks of a job stand at one point of their start."""
    looks = {
        reading.source.file
        for reading in scene.readings
        if len(reading.lines) <= GLANCE_LINES
        and any(_PROMPT.match(line.text[:200]) for line in reading.lines)
    }
    if not looks:
        return None
    ends: list[Line] = []
    for reading in scene.readings:
        if reading.source.role is SourceRole.WORKER and reading.source.file not in looks:
            ends += [line for line in reversed(reading.lines) if line.text.strip()][:1]
    times = [line.time for line in ends if line.time is not None]
    if len(ends) < LEAST_RANKS or len(times) < len(ends) or max(times) - min(times) > APART_SECONDS:
        return None
    if len({without_digits(line.message) for line in ends}) > 1:
        return None
    newest = max(
        line.time
        for reading in scene.readings
        if reading.source.role in JOB_ROLES and reading.source.file not in looks
        for line in reading.lines
        if line.time is not None
    )
    idle = _are_idle(scene)
    if not idle and not _are_alive(scene, looks):
        return None  # a job that ended without a word looks the same
    patience = IDLE_SECONDS if idle else LATER_SECONDS
    for reading in scene.readings:
        for line in reading.lines if reading.source.file in looks else ():
            for now in told_now(line):
                silence = (now - naive(newest)).total_seconds()
                if silence > patience and not is_zone(silence):
                    why = f"all ranks stood at one point for {silence:.0f} s when somebody looked"
                    return Standstill(min(ends, key=lambda line: line.file), line, why)
    return None


_PID = regex(r"(?<![\d.:])\d{2,8}(?![\d.:])")


def _are_alive(scene: Scene, looks: set[str]) -> bool:
    """Whether what somebody saw lists a process that runs: by its age, or the number of one that wrote."""
    if any(line.file in looks for line, _ in running(scene)):
        return True
    of_ranks = {
        str(line.pid)
        for reading in scene.readings
        if reading.source.role is SourceRole.WORKER and reading.source.file not in looks
        for line in reading.lines
        if line.pid is not None
    }
    return any(
        not of_ranks.isdisjoint(_PID.findall(line.text[:400]))
        for reading in scene.readings
        if reading.source.file in looks
        for line in reading.lines
        if not _PROMPT.match(line.text[:200])
    )


def _are_idle(scene: Scene) -> bool:
    """Whether rows of several GPUs, in use by processes, show that none of them computes."""
    loads = [
        int(busy["busy"])
        for reading in scene.readings
        if len(reading.lines) <= GLANCE_LINES
        for line in reading.lines
        if "%" in line.text
        and (busy := _GPU_LOAD.search(line.text[:200])) is not None
        and (used := _GPU_MEMORY.search(line.text[:200])) is not None
        and int(used["mib"]) >= LEAST_MIB
    ]
    return len(loads) > 1 and not any(loads)
