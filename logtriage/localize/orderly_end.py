"""An end in good order that no word tells: who reported the steps took leave, and who started it notes a 0.

Words for being done are many. But a program that comes to its end writes at last what it never wrote before,
behind its last step, and who started it writes a status behind that.
"""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.habits import Kinds
from logtriage.localize.scene import Scene
from logtriage.mining.kinds import key_of
from logtriage.model import JOB_ROLES, Level, Line, SourceRole
from logtriage.regex import regex

# A number behind a word, a colon or an equals sign at the end of a line, with what draws a rule around it.
_ZERO = regex(r"(?:[A-Za-z]\w{0,30}[)\]]?|[:=])[:=]? ?\(?0\)?[\s.;|=#*~+-]{0,40}$")
_BAD = regex(
    r"(?i)\b(?:error|fail\w*|fatal|exception|abort\w*|kill\w*|signal|sig[a-z]{3,5}|preempt\w*|cancel\w*"
    r"|evict\w*|interrupt\w*|time[- ]?(?:d )?(?:out|limit)|crash\w*|lost|unreachable|waiting|stuck"
    r"|retry\w*|restart\w*)\b"
)
MOST_OF_A_STARTER = 400  # lines: who starts a job says little
LAST_LINES = 3  # of a file among which it takes leave


def orderly_end(scene: Scene, kinds: Kinds, last_steps: Sequence[Line]) -> Line | None:
    """The line of the starter that notes the 0, where a writer of steps took leave behind its last one.

    `last_steps` are the last ones of each who reports them.
    """
    ended = max((line.time for line in last_steps if line.time is not None), default=None)
    if any(
        line.level in (Level.ERROR, Level.CRITICAL)
        and line.time is not None
        and (ended is None or line.time > ended)
        for reading in scene.readings
        if reading.source.role in JOB_ROLES
        for line in reading.lines[-LAST_LINES:]
    ):
        return None
    said = [
        line
        for step in last_steps
        for line in scene.lines(step.file)[-LAST_LINES:]
        if line.number > step.number
    ]
    if not any(_is_new(line, kinds) for line in said):
        return None
    stepped = {step.file for step in last_steps}
    for reading in scene.readings:
        lines = [line for line in reading.lines if line.text.strip()]
        of_starter = reading.source.role in (SourceRole.MERGED, SourceRole.LAUNCHER)
        if not of_starter or reading.source.file in stepped or not 1 < len(lines) <= MOST_OF_A_STARTER:
            continue
        noted = lines[-1]
        if _ZERO.search(noted.text[-200:]) and not _BAD.search(noted.text[:1000]) and _is_new(noted, kinds):
            return noted
    return None


def _is_new(line: Line, kinds: Kinds) -> bool:
    """Whether a line is calm and of a kind that its file has only here, at its end."""
    if not line.text.strip() or line.level in (Level.WARNING, *_LOUD) or _BAD.search(line.message[:1000]):
        return False
    summary = kinds.of_files.get(line.file)
    count = summary.keys.get(key_of(line.text)) if summary is not None else None
    return count is not None and summary is not None and count.first[0] > summary.lines - _tail(count.count)


_LOUD = (Level.ERROR, Level.CRITICAL)


def _tail(count: int) -> int:
    """Among how many last lines a kind stands that each of several writers of a file wrote once."""
    return 3 * count + LAST_LINES
