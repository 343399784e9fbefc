"""Logs whose lines were cut short: what a verdict does not see may stand behind the cuts."""

from __future__ import annotations

from collections import Counter

from logtriage.localize.cascade import CONSEQUENCES
from logtriage.localize.findings import Findings
from logtriage.model import JOB_ROLES

_DOTS = ("...", "\N{HORIZONTAL ELLIPSIS}", "[truncated]")
_LEAST_CUT = 4  # lines of one length, the greatest of the file, that all end so
_LEAST_WIDTH = 40
# What is concluded where no line tells of anything else.
_OF_SILENCE = (*CONSEQUENCES, "hang.", "slow.", "none.")


def may_be_cut_away(failure_type: str, findings: Findings) -> bool:
    """Whether a verdict rests on what was not said, and the ends of lines that may have said it are gone."""
    if not failure_type.startswith(_OF_SILENCE):
        return False
    for reading in findings.scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        lengths = [len(line.text) for line in reading.lines]
        width = max(lengths, default=0)
        cut = Counter(len(line.text) for line in reading.lines if line.text.endswith(_DOTS))
        if width >= _LEAST_WIDTH and cut[width] >= _LEAST_CUT and 2 * cut[width] > lengths.count(width):
            return True
    return False
