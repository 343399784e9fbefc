"""Terminals that were copied whole: what the job printed, and what other commands before and after it.

What `pip install`, `git pull` or a try at an import complain of is not what a job died of. What machines,
files and schedulers were asked (`dmesg`, `nvidia-smi`, `ls`, `squeue`) stays: it may tell of the job.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from logtriage.intake.reading import Reading
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# `$ `, `(env) me@host:~/dir$ `, `[me@host dir]# `, `bash-5.1$ `, `C:\\me>` and `PS C:\\me>`.
_PROMPT = regex(
    r"^(?:\([\w.-]{1,40}\) ?)?(?:\[?[a-zA-Z_][\w.-]{0,30}@[\w.-]{1,60}(?:[: ][^\]#$%\n]{0,80})?\]?[#$%]"
    r"|[$%❯➜]|(?:PS )?[A-Z]:\\[^>\n]{0,80}>|(?:ba)?sh-\d\.\d[$#]) +(?P<command>[\w./~(\"'-].{0,300})$"
)
_MAY_PROMPT = ("$ ", "# ", "% ", "> ", "❯ ", "➜ ")
_BEFORE = r"^(?:sudo (?:-\w+ )*)?(?:[A-Z_]+=\S* )*"
_TRY = regex(_BEFORE + r"(?:python|py)[\d.]* -c\b")
# Commands that run no job and tell nothing of what it runs on.
_ASIDE = regex(
    _BEFORE
    + r"(?:(?:python|py)[\d.]* (?:-c\b|-V\b|--version|-m (?:pip|venv|ensurepip)\b)"
    + r"|(?:pip3?|pipx|uv|conda|mamba|micromamba|poetry|apt|apt-get|yum|dnf|brew|apk|npm|git|gh|cd|pwd|kill"
    + r"|pkill|killall|which|whereis|type|echo|export|unset|alias|mkdir|rm|rmdir|cp|mv|ln|chmod|chown"
    + r"|touch|wget|curl|scp|rsync|module|ml|whoami|exit|logout|clear|reset|vim?|nano|emacs|history|wc|diff"
    + r"|tar|unzip|fg|bg|jobs|man|tmux|screen|huggingface-cli|hf|source|\.)(?:\s|$))"
)
# What asks a machine, a file system, a scheduler or a cluster.
_ASKS = regex(
    r"^(?:sudo (?:-\w+ )*)?(?:watch (?:-\w+ ?[\d.]* )*)?(?:dmesg|journalctl|\w{2,6}-smi|neuron-\w+|ps|pgrep"
    r"|top|htop|py-spy|gdb|squeue|sacct|scontrol|sinfo|seff|qstat|bjobs|(?:kubectl|oc) (?:get|describe|top)"
    r"|docker (?:ps|inspect|stats)|ray (?:status|list)|ibstat\w*|ibv_\w+|perfquery|dcgmi|ethtool|ip|ss"
    r"|netstat|ping|ls|ll|df|du|free|ulimit|lscpu|lsblk|stat|find|nvcc|gcc|uname|hostname|date|env|printenv|lsof"
    r"|uptime|w|who|last|cat /(?:proc|sys)|grep|strace|coredumpctl|nfsstat|mount|systemctl)(?:\s|$)"
)
# A signal by which a process is made to show where it stands, as it ends: Python's faulthandler, a core file.
_FATAL = regex(
    _BEFORE + r"p?kill(?:all)? (?:-s ?|--signal[ =])?-?(?:SIG)?(?:ABRT|QUIT|SEGV|BUS|FPE|ILL|3|6|8|11)\b"
)


def asks_for_stacks(text: str) -> bool:
    """Whether a line is a person's command that ends a process so that it shows its stacks."""
    if "kill" not in text or (prompt := _PROMPT.match(text[:420])) is None:
        return False
    return _FATAL.match(prompt["command"]) is not None


def of_the_job(reading: Reading) -> Reading:
    """A reading without what other commands printed, where it is a terminal's in which a job was run too."""
    if reading.source.role not in JOB_ROLES:
        return reading
    commands = list(_commands(reading.lines))
    begins_bare = bool(commands) and commands[0][0] > 0
    runs = begins_bare or any(not _is_aside(each) and not _ASKS.match(each) for _, each in commands)
    if not runs or not any(_is_aside(each) for _, each in commands):
        return reading
    kept: list[Line] = list(reading.lines[: commands[0][0]])
    ends = [at for at, _ in commands[1:]] + [len(reading.lines)]
    for (at, command), end in zip(commands, ends, strict=True):
        printed = reading.lines[at:end]
        if not _is_aside(command):
            kept += printed
        elif not _TRY.match(command):  # a job beside it may go on printing
            kept += itertools.dropwhile(lambda line: not _is_of_program(line), printed[1:])
    return replace(reading, lines=tuple(kept))


def _is_aside(command: str) -> bool:
    return _ASIDE.match(command) is not None and _FATAL.match(command) is None


def _is_of_program(line: Line) -> bool:
    return (
        line.time is not None or line.level is not None or line.message.startswith("Traceback (most recent")
    )


def _commands(lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
    """Where commands were given at a prompt, and which."""
    for at, line in enumerate(lines):
        if any(sign in line.text[:120] for sign in _MAY_PROMPT):
            prompt = _PROMPT.match(line.text[:420])
            if prompt is not None:
                yield at, prompt["command"]
