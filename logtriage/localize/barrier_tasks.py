"""Ranks by the tasks of a Spark stage that runs in barrier mode: all of it at once, one task a rank.

TorchDistributor, XGBoost and Horovod on Spark start their processes so. The driver names who was lost by
stage and task (`Lost task 2.0 in stage 12.0`); of other stages a task is a piece of data, and no rank.
"""

from __future__ import annotations

from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES
from logtriage.regex import regex

_LOST = regex(r"\bLost task (?P<task>\d{1,6})\.\d{1,4} in stage (?P<stage>\d{1,7})\.\d{1,4} \(TID ")
_BARRIER = regex(
    r"\bbarrier task \w{1,20}\((?P<a>\d{1,7}), ?\d{1,6}\)"
    r"|\bMarking \w{1,20}Stage (?P<b>\d{1,7}) .{0,300}\bdue to a barrier task failed"
    r"|\bbarrier epoch for Stage (?P<c>\d{1,7})\b"
    r"|\bTask \d{1,9} from Stage (?P<d>\d{1,7})\(Attempt \d{1,4}\) (?:has entered|waiting .{0,60}|finished) "
    r"the (?:global sync|barrier)"
)


def barrier_ranks(scene: Scene) -> dict[tuple[str, int], int]:
    """Rank by file and number of the lines that tell of a lost task of a stage in barrier mode."""
    found: dict[tuple[str, int], int] = {}
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        lost = [
            (line.number, told)
            for line in reading.lines
            if "Lost task " in line.text and (told := _LOST.search(line.text[:400])) is not None
        ]
        if not lost:
            continue
        stages = {
            told[told.lastgroup or 0]
            for line in reading.lines
            if "arrier" in line.text and (told := _BARRIER.search(line.text[:1000])) is not None
        }
        found |= {
            (reading.source.file, number): int(told["task"])
            for number, told in lost
            if told["stage"] in stages
        }
    return found
