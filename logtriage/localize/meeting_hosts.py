"""Where the processes of a job meet: a host of its own, mostly."""

from __future__ import annotations

import re

from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, SourceRole
from logtriage.regex import regex

_MEETING = regex(
    r"(?i)(?:rdzv[-_ ]?endpoint|master[-_ ]?addr(?:ess)?|coordinator[-_ ]?address|init[-_ ]?method"
    r"|dist[-_]url|distributed service on|master(?: node)? (?:at|is))"
    r"[^\w\n]{1,12}(?:tcp://)?(?P<host>[a-z][\w-]{0,60}\d)(?=[.:\s\"']|$)"
)
MEETING_LINES = 200  # start-up tells it
# The rarest word of each, soon looked for.
_MEETS = ("endpoint", "addr", "method", "service on", "master", "dist_url", "dist-url")


def meeting_rows(scene: Scene, meeting: set[str]) -> set[str]:
    """The names, without their numbers, of files or folders one of which is named after the host where all
    meet.
    """
    stems = {part.split(".", 1)[0] for source in scene.sources for part in source.file.split("/")}
    return {re.sub(r"\d+$", "", host) for host in meeting if host in stems}


def meeting_hosts(scene: Scene) -> set[str]:
    """The hosts that the first lines of the logs name as where all meet."""
    texts = (
        line.text[:400]
        for reading in scene.readings
        if reading.source.role in (*JOB_ROLES, SourceRole.KUBERNETES)
        for line in reading.lines[:MEETING_LINES]
    )
    may = (text for text in texts if any(map(text.lower().__contains__, _MEETS)))
    return {found["host"] for text in may if (found := _MEETING.search(text)) is not None}
