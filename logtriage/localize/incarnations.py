"""Earlier incarnations of a job in Slurm's accounting: requeued under its number, it came to its end.

`sacct --duplicates` lists them under one number, the oldest first; only the last row tells how the job ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.rulebank.rule import Mark


def without_earlier_incarnations(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """The candidates, with rows marked `recovered` behind which the same job is listed as completed."""
    last: dict[tuple[str, str], int] = {}
    for sign in scene.marked(Mark.COMPLETED):
        if sign.rule.id.startswith("slurm.record."):
            job = sign.line.file, _number(sign.line)
            last[job] = max(last.get(job, 0), sign.line.number)
    if not last:
        return list(candidates)
    return [
        replace(each, recovered=True)
        if each.rule is not None
        and each.rule.id.startswith("slurm.record.")
        and last.get((each.line.file, _number(each.line)), 0) > each.line.number
        else each
        for each in candidates
    ]


def _number(line: Line) -> str:
    """The number that begins a row: of a job as a whole, without its steps."""
    words = line.message.replace("|", " ").split(maxsplit=1)
    return words[0] if words and words[0][:1].isdigit() else ""
