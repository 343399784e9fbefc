"""Where a terminal, or a script that shows its commands, speaks again behind a program: that one has ended.

A shell waits for what it called. A bare prompt, the times that `time` tells, and the next command of a script
that is traced (`+ ls -l out`) stand in a log only after the program is gone; had it crashed, its last words
or the shell's would say so.
"""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.model import Line
from logtriage.regex import regex

# A prompt and what was called at it: `(env) me@cn-3:~/run$ `, `[me@cn-3 run]$ `, `C:\\run>`.
_PROMPT = regex(
    r"^(?:\([\w.-]{1,40}\) ?)?(?:[a-z_][\w.-]{0,30}@[\w.-]{1,60}:[^\n$#%]{0,120}[$#%]"
    r"|\[[a-z_][\w.-]{0,30}@[\w.-]{1,60} [^\]\n]{1,80}\][$#]|(?:PS )?[A-Z]:\\[^>\n]{0,160}>)\s*"
    r"(?P<command>.*)$"
)
# `$`, `>`, `julia>`, `>>>`: prompts without a name, known by the same one with a command above.
_BARE = regex(r"^(?:[\w()-]{1,20})?(?:[$❯]|>{1,3})$")
# Who looks at the log of another program, or starts it behind his back, has his prompt back before its end.
_LOOKS = regex(
    r"^(?:sudo )?(?:tail|head|cat|less|more|grep|zcat|sed|awk|watch|type|gc|get-content|kubectl|docker|podman"
    r"|ssh|squeue|sbatch|qsub|bsub|screen|tmux|scp|nohup|ps|top|nvidia-smi|srun --jobid)\b"
    r"|(?<!&)&\s*$|\| ?(?:head|tail|less|more|grep)\b",
)
_SMALL = regex(r"^(?:sudo )?(?:ls|ll|date|stat|du|df|pwd|cd|echo|wc|history|sha256sum|md5sum)\b")
_TRACED = regex(r"^\+{1,4} (?:\w{1,40}=\S{0,200} )*(?P<program>[A-Za-z./~\[][\w./\[-]{0,200})(?: |$)")
# What scripts call behind the work: none of these takes long, or is the work.
_AFTERWARDS = regex(
    r"(?:\[{1,2}|cat|chmod|cp|date|deactivate|du|echo|exit|find|gzip|head|ls|md5sum|mv|printf|rm|set|sha256sum"
    r"|stat|sync|tail|tar|test|touch|true|wc)$"
)
# `time` of bash and zsh, and /usr/bin/time.
_TIMED = regex(
    r"^(?:real\s+(?:\d{1,5}m)?\d{1,9}[.,]\d{1,3}s?$|\d{1,9}\.\d\duser \d{1,9}\.\d\dsystem \d"
    r"|.{1,200} \d+[.,]\d\ds user \d+[.,]\d\ds system \d{1,5}% cpu )"
)
LAST_LINES = 40  # among which a shell speaks at the end


def back_at_the_shell(lines: Sequence[Line]) -> Line | None:
    """The line with which the shell speaks that had called the program of this log, once it has ended."""
    spoken = [line for line in lines[-LAST_LINES - LAST_LINES :] if line.text.strip()][-LAST_LINES:]
    if not spoken:
        return None
    for line in spoken:
        if _TIMED.match(line.text[:300]) is not None:
            return line
    last = spoken[-1]
    return last if _is_back(lines, last) else _next_command(lines, spoken)


def _is_back(lines: Sequence[Line], end: Line) -> bool:
    """Whether the prompt at which the program was called stands at the end, with nothing behind it."""
    above = [line for line in lines if line.number < end.number]
    if (sign := _BARE.match(end.text.strip())) is not None:
        called = (
            line.text.strip()[len(sign[0]) :].strip()
            for line in reversed(above)
            if line.text.lstrip().startswith(f"{sign[0]} ")
        )
    elif (bare := _PROMPT.match(end.text[:300])) is not None and not bare["command"]:
        prompts = (
            _PROMPT.match(line.text[:600]) for line in reversed(above) if ">" in line.text or "@" in line.text
        )
        called = (prompt["command"] for prompt in prompts if prompt is not None)
    else:
        return False
    command = next((each for each in called if each and not _SMALL.match(each)), "")
    return bool(command) and not _LOOKS.search(command.lower())


def _next_command(lines: Sequence[Line], spoken: Sequence[Line]) -> Line | None:
    """The first of the small commands with which a traced script ends, behind a larger one."""
    first: Line | None = None
    for line in reversed(spoken):
        if not line.text.startswith("+") or (traced := _TRACED.match(line.text[:600])) is None:
            continue
        if _AFTERWARDS.match(traced["program"]) is None:
            return first
        first = line
    if first is None:
        return None
    earlier = (
        _TRACED.match(line.text[:600])
        for line in lines
        if line.number < first.number and line.text.startswith("+")
    )
    larger = (each for each in earlier if each is not None and _AFTERWARDS.match(each["program"]) is None)
    return first if next(larger, None) is not None else None
