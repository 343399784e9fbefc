"""Reports of a job's end that stand above its output: LSF writes so, into the file or the mail of a job.

What such a report tells happened after all that stands below it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from logtriage.localize.candidates import Candidate
from logtriage.localize.scene import Scene

_HEADING = "Sender: LSF System"  # one stands on top of each report
_OUTPUT = "The output (if any) follows"
MOST_LINES = 80  # of a report; the script of the job is repeated in it


def reported_on_top(candidates: Iterable[Candidate], scene: Scene) -> set[tuple[str, int]]:
    """The places of candidates that the report above the last run's output holds."""
    found = set()
    for each in candidates:
        if each.rule is None or not each.rule.id.startswith("lsf."):
            continue
        lines = scene.lines(each.line.file)
        at = bisect.bisect_right(lines, each.line.number, key=lambda line: line.number)
        below = lines[at : at + MOST_LINES]
        ends = next((n for n, line in enumerate(below) if line.text.strip().startswith(_OUTPUT)), None)
        # Reports of later runs may follow in the same file: `bsub -o` appends.
        if ends is not None and not any(_HEADING in line.text[:200] for line in lines[at:]):
            found.add((each.line.file, each.line.number))
    return found
