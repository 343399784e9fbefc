"""Hosts of files that begin as a terminal did: `me@cn-3:~$ python train.py | tee train.log`.

Or with words of where their process runs: `pod trainer-1 on cn-3, world size 16`.
"""

from __future__ import annotations

from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES
from logtriage.regex import regex

_PROMPT = regex(
    rf"^(?:\([\w.-]{{1,40}}\) ?)?\[?[a-z_][\w.-]{{0,30}}@({HOST_WORD})(?:[: ][^\]#$%]{{0,80}})?\]?[#$%] "
)


def prompted_hosts(scene: Scene) -> dict[str, str]:
    """Hosts by file, where the prompts in each of several files name one host, another in each.

    Of one file alone the prompt may be that of the machine from which its job was launched.
    """
    prompts = _prompts(scene, named=False)
    if len(set(prompts.values())) == len(prompts) > 1:
        return prompts
    stated = _stated(scene)  # of processes, of which one machine may run many, one after the other
    return stated if len(set(stated.values())) > 1 else {}


HEAD_LINES = 8
_RUNS_ON = regex(
    rf"\b(?:[Pp]od \"?[a-z0-9][\w.-]{{0,120}}\"? (?:(?:is|was|running|started|scheduled|placed) ){{0,2}}"
    r"on (?:(?:node|host) )?|(?:[Rr]unning|[Ss]tarted|[Ll]aunched) on (?:the )?(?:node|host) "
    r"|(?:(?<=^)|(?<=^# ))[Rr]unning on (?=\S{1,80}$)"  # Kaldi's queue.pl and others, above the command
    rf"|[Hh]ostname ?[:=] )({HOST_WORD})(?![\w.-])"
)


def _stated(scene: Scene) -> dict[str, str]:
    """The one host that the first lines of each file say that it runs on."""
    found: dict[str, str] = {}
    for reading in scene.readings:
        if reading.source.host is not None or reading.source.role not in JOB_ROLES:
            continue
        said = (_RUNS_ON.search(line.text[:300]) for line in reading.lines[:HEAD_LINES])
        hosts = {runs[1] for runs in said if runs is not None and is_host(runs[1])}
        if len(hosts) == 1:
            found[reading.source.file] = hosts.pop()
    return found


def whole_names(scene: Scene) -> dict[str, str]:
    """What the machines are called of which the names of files tell the end alone, as their prompts say it:
    of w-3.txt, `me@pod-77ab-w-3:~$`.
    """
    prompts = _prompts(scene, named=True)
    ends = {reading.source.file: reading.source.host or "" for reading in scene.readings}
    found = {ends[file]: host for file, host in prompts.items() if host.endswith(f"-{ends[file]}")}
    return found if len(set(found.values())) == len(found) == len(prompts) > 1 else {}


def _prompts(scene: Scene, *, named: bool) -> dict[str, str]:
    """The one host of each file's prompts, of files whose names tell a host, or of those that do not."""
    found: dict[str, str] = {}
    for reading in scene.readings:
        if (reading.source.host is not None) is not named or reading.source.role not in JOB_ROLES:
            continue
        texts = (line.text[:200] for line in reading.lines if "@" in line.text[:75])
        prompts = (prompt for text in texts if (prompt := _PROMPT.match(text)) is not None)
        hosts = {prompt[1] for prompt in prompts if is_host(prompt[1])}
        if len(hosts) == 1:
            found[reading.source.file] = hosts.pop()
    return found
