"""Which paths may be read at all: those below configured folders, whatever a question or a job says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from logtriage.sources.job import SourceFault

LONGEST = 1_024  # characters of a question for a job
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class Refused(SourceFault):
    """A question that no source is asked; the message is the plain answer."""


def checked(asked: str) -> str:
    """The question without blanks around it. Raises Refused for what names no job and no path."""
    if len(asked) > LONGEST:
        raise Refused(f"that is no job: a name or path has at most {LONGEST:,} characters")
    asked = asked.strip()
    if not asked:
        raise Refused("name a job: its id, name, user, or the path of its logs")
    if _CONTROL.search(asked):
        raise Refused("that is no job: it holds control characters")
    if re.search(r"[*?\[\]{}]", asked):
        raise Refused("patterns are not looked up: name one job, or its user")
    if ".." in asked.split("/"):
        raise Refused("a path with .. is not looked up: name the folder itself")
    if asked.startswith("-"):
        raise Refused("that is no job: no id or name begins with a dash")
    return asked


def is_path(asked: str) -> bool:
    return "/" in asked or asked.startswith("~")


def below(path: str, roots: Sequence[str]) -> str | None:
    """The real path of `path` where it lies in one of the folders, links resolved; None elsewhere."""
    try:
        real = os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None
    for root in roots:
        top = os.path.realpath(root)
        if real == top or real.startswith(top.rstrip("/") + "/"):
            return real
    return None
