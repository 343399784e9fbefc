"""Reports of a job's end that stand above its output: LSF writes so, into the file or the mail of a job.

What such a report tells happened after all that stands below it.
"""

from __future__ import annotations

import bisect

from logtriage.localize.scene import Scene
from logtriage.model import Line

_HEADING = "Sender: LSF System"  # one stands on top of each report
_OUTPUT = "The output (if any) follows"
_ENDS = ("TERM_", "Exited ", "Successfully completed")  # how a report says what the end was
MOST_LINES = 80  # of a report; the script of the job is repeated in it


def is_reported_on_top(line: Line, scene: Scene) -> bool:
    """Whether a line tells of the end in the report above the last run's output."""
    if not line.text.lstrip().startswith(_ENDS):
        return False
    lines = scene.lines(line.file)
    at = bisect.bisect_right(lines, line.number, key=lambda each: each.number)
    if not any(each.text.lstrip().startswith(_OUTPUT) for each in lines[at : at + MOST_LINES]):
        return False
    # Reports of later runs may follow in the same file: `bsub -o` appends.
    return not any(_HEADING in each.text[:200] for each in lines[at:])
