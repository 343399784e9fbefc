"""A program that asks whoever sits at its terminal for a password or a yes, where nobody sits.

Below a bar or a spinner that draws itself anew the question is not seen. Its clock goes on alone, and tells
for how long nothing else was done.
"""

from __future__ import annotations

from dataclasses import dataclass

from logtriage.localize.bars import FROZEN_BARS, FROZEN_SECONDS
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

LAST_LINES = 200  # of a file: a spinner is drawn often
_WORDS = ("assword", "assphrase", "yes/no", "[y/n]", "[Y/n]", "[y/N]", "sername for")
_QUESTION = regex(
    r"\[sudo\] password for [\w.-]{1,64}: |\bEnter (?:passphrase|password) for [^\n]{1,200}: "
    r"|\b[\w.-]{1,64}@[\w.-]{1,100}'s password: |\b(?:Username|Password) for '?https?://[^\n]{1,200}: "
    r"|\(yes/no(?:/\[fingerprint\])?\)\? |\[[Yy]/[Nn]\]:? "
)
# `⠸ Preparing  0/5 shards  1:00:00`, as rich draws it.
_DRAWN = regex(
    r"(?P<count>\d{1,9})/(?P<total>\d{1,9})\b[^\n\d]{0,40}?"
    r"(?P<hours>\d{1,4}):(?P<minutes>\d\d):(?P<seconds>\d\d)(?!\d)"
)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """What was asked, the last that was drawn since, and for how many seconds."""

    asked: Line
    last: Line
    seconds: float


def unanswered(scene: Scene) -> Unanswered | None:
    """A question behind which a file holds nothing but one bar whose clock goes on."""
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        lines = reading.lines[-LAST_LINES:]
        for at in range(len(lines) - 1, -1, -1):
            text = lines[at].text
            if not any(word in text for word in _WORDS) or _QUESTION.search(text) is None:
                continue
            drawn = [
                (bar["count"], bar["total"], _seconds(bar["hours"], bar["minutes"], bar["seconds"]), line)
                for line in lines[at:]
                for bar in _DRAWN.finditer(line.text)
            ]
            if len(drawn) < FROZEN_BARS or len({each[:2] for each in drawn}) > 1:
                break
            silence = drawn[-1][2] - drawn[0][2]
            if silence > FROZEN_SECONDS and drawn[-1][0] != drawn[-1][1]:
                return Unanswered(lines[at], drawn[-1][3], silence)
            break
    return None


def _seconds(hours: str, minutes: str, seconds: str) -> float:
    return 3600.0 * int(hours) + 60.0 * int(minutes) + int(seconds)
