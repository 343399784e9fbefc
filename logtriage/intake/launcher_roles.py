"""Which files hold what a launcher says, and not the processes that it starts."""

from __future__ import annotations

import re

from logtriage.model import SourceRole
from logtriage.regex import regex

_AGENT = regex(
    r"torch[/.]distributed[/.](?:run|launch|elastic|launcher)|torch\.distributed\.elastic"
    r"|\[launch(?:er)?\.py:|\[runner\.py:"
    r"|multinode_runner\.py|Setting OMP_NUM_THREADS|^\*{20,}|ChildFailedError|^Root Cause|^Failures:"
    r"|^={20,}|^-{20,}"
    r"|^\s*(?:time|host|rank|exitcode|error_file|traceback) +: |^\s*<NO_OTHER_FAILURES>|^\[\d+\]:$"
    r"|socket\.cpp:\d+\]"
    r"|TCPStore\.cpp|SignalException|exitcode: -?\d+\) local_rank: |closing signal SIG|^\S+ FAILED$"
    r"|launch(?:er)?/api\.py"
    r"|accelerate[/.]commands[/.]launch|bin/(?:torchrun|accelerate|deepspeed)|^frame #\d+:"
)
_AGENT_ITSELF = regex(
    r"torch[/.]distributed[/.](?:run|launch|elastic|launcher)|\[launch(?:er)?\.py:|\[runner\.py:"
    r"|multinode_runner"
    r"|ChildFailedError|bin/(?:torchrun|accelerate|deepspeed)"
)
LAUNCHER_WORDS = ("torch", "launch", "runner.py", "socket.cpp", "(raylet)", "(gcs_server)")
_SUPERVISOR = regex(r"\((?:raylet|gcs_server|autoscaler|dashboard|monitor)\)")
_TRACE_LINE = regex(
    r'^Traceback |^\s+File "|^\s{4,}\S|^\s+\^+|^\s+[~^]+$|^During handling|^The above exception'
)
_AGENT_FRAME = regex(r"distributed[/.](?:run|elastic|launcher)|bin/(?:torchrun|accelerate|deepspeed)")


_DOZEN = 12


def _may_be_agents(line: str) -> bool:
    return _AGENT.search(line) is not None or _TRACE_LINE.match(line) is not None


def launcher_role(lines: list[str], file: str) -> SourceRole | None:
    """The agent that starts the workers, where it alone speaks; None for whatever else a file is."""
    if _SUPERVISOR.search(lines[-1]) and sum(map(bool, map(_SUPERVISOR.search, lines))) > 0.8 * len(lines):
        return SourceRole.LAUNCHER
    some = lines[:: 1 + len(lines) // _DOZEN]
    if sum(map(_may_be_agents, some)) * 2 < len(some):  # nearly all lines have to be the agent's
        return None
    agent = traces = 0
    in_agent = False
    for seen, line in enumerate(lines):
        if seen - agent - traces > 0.1 * len(lines):  # the workers speak in it as well
            return None
        if _AGENT.search(line):
            agent += 1
            in_agent = True
        elif in_agent and _TRACE_LINE.match(line):
            traces += 1
        elif line.startswith("Traceback"):
            in_agent = True
            traces += 1
        else:
            in_agent = False
    if agent < 1 or agent + traces < 0.9 * len(lines):
        return None
    # Every process may warn of its sockets or end in a traceback: a launcher says that it is one.
    if not any(map(_AGENT_ITSELF.search, lines)) and not re.search(r"(?i)agent|launch|torchrun", file):
        return None
    frames = [line for line in lines if line.lstrip().startswith('File "')]
    own = sum(_AGENT_FRAME.search(line) is not None or "site-packages" in line for line in frames)
    return SourceRole.LAUNCHER if own >= 0.8 * len(frames) else None
