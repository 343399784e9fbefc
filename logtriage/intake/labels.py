"""Prefixes that launchers and libraries put before a process's line: rank, host, pid; they may nest."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from logtriage.intake.levels import SYSLOG_LEVELS, level_named
from logtriage.intake.names import OTHER_WORD
from logtriage.intake.place_labels import PlaceLabels
from logtriage.intake.times import Stamp
from logtriage.model import Level
from logtriage.regex import regex


@dataclass(slots=True)
class Head:
    """What was read before the message; `message` is the rest. `local` is a rank within its node."""

    rank: int | None = None
    local: int | None = None
    host: str | None = None
    pid: int | None = None
    level: Level | None = None
    stamp: Stamp | None = None
    uptime: float | None = None  # seconds since boot, where the kernel's own clock stands beside
    message: str = ""
    styles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Which doubtful prefixes a file really uses; without that knowledge they are taken for text."""

    srun_labels: bool = False  # `3: `
    prepended: bool = False  # `[3] `, as MPICH's launchers and Intel's put it before each line
    srun_nodes: bool = False  # those labels count launchers, one a node: `3: [rank29]: `
    tee_numbers: bool = False  # `[3]:`
    tab_ranks: bool = False  # `host:19` between tabs counts the job's ranks, not a node's own
    rank_column: bool = False  # `rank 3 …` or `rank3 …` behind the time
    rank_name: bool = False  # `3:main:67 - …` behind the level, a rank where loguru puts a module's name
    syslog_host: bool = False  # `<ISO time> host program[pid]: `
    bare_hosts: Set[str] = frozenset()  # `Jan 31 08:00:07 host program …`, as viewers of syslog show it
    host_labels: Set[str] = frozenset()  # `host: `
    bar_labels: Set[str] = frozenset()  # `host | `, before ranks in some lines
    places: PlaceLabels | None = None  # what nearly all lines begin with
    host_value: int | None = None  # the place of the host among the values of a row

    @property
    def tells_places(self) -> bool:
        """Whether each line tells which machine or pod it is from."""
        return self.places is not None or self.host_value is not None


_RANK_BRACKET = regex(r"\[(?:(?i:rank)[ _:=-]{0,2}|process=)(\d{1,6})(?:/\d{1,6}|-restart\d+)?\](:?)")
_TEE = regex(r"\[[A-Za-z][A-Za-z_-]{0,40}(\d{1,5})\]: ?")
_TEE_NUMBER = regex(r"\[(\d{1,5})\]: ?(?=.*\S)")
PREPENDED = regex(r"\[(\d{1,5})\] ?")
# Open MPI: by job and rank, by rank alone, or with `[host:pid]` behind.
_MPI = regex(r"\[(?:[^\]\s,\[]{1,120},)?(\d{1,6})\](?:\[([\w.-]{1,100}):(\d{1,9})\])?<std\w{2,6}>: ?")
_SAGEMAKER = regex(r"\[\d+,mpirank:(\d{1,6}),([\w.-]{1,100})\]<std\w{2,6}>: ?")
# SageMaker's hosts: in exports of CloudWatch, and in the output of its local mode.
_ALGO = regex(r"(?:\[(algo-\d{1,4})\]|(algo-\d{1,4})(?:-[a-z0-9]{5})?(?:[-_]1)? {1,4}\|) ?")
_MPI_CRASH = regex(r"\[([A-Za-z][\w.-]{0,100}):(\d{1,9})\] (?=\*\*\*|Signal|Failing|\[ ?\d)")
_UCX = regex(r"\[([A-Za-z][\w.-]{0,100}):(\d{2,9}):\d+:\d+\] ?")
_RAY = regex(
    r"\((?:[A-Za-z_][\w.:<>-]{0,80} ?)?(?:rank=(\d{1,6}),? ?)?pid=(\d{1,10})(?:, ?ip=([\w.:-]{1,60}))?\) ?"
)
# SkyPilot's rank, set off by commas, counts nodes; before it stands the name of one: `(worker2, rank=2, …)`.
_SKYPILOT = regex(r"\((?:([\w.-]{1,80}), rank=\d+|[\w.-]{1,80}), pid=(\d{1,10})(?:, ip=([\w.:-]{1,60}))?\) ?")
# TorchX's, of the replica of a role and the process in it: `trainer/1 [2]:`, `trainer/1 [default2]:`.
_TORCHX = regex(r"([A-Za-z][\w.-]{0,60}/\d{1,5}) (?:\[(\d{1,4})\]:|(?=\[[a-z_]{1,20}\d{1,4}\]:))")
_POD = regex(r"\[pod/([\w.-]{1,253})/[\w.-]{1,253}\] ?")
# `[trainer-0-2] [rank10]: `: whatever gathered the output of several machines names the one it is from.
_PLACE = regex(r"\[((?=[\w.-]{0,100}\d)[A-Za-z][\w.-]{1,100})\] (?=\[(?i:rank)[ _:=-]?\d{1,6}\])")
# `[cn-3:r7] `, `[cn-3 rank 7] `: a label that says both, though few of a file's lines may have one.
_HOST_AND_RANK = regex(
    r"\[((?=[\w.-]{0,100}\d)[A-Za-z][\w.-]{1,100})(?: ?[:|,/@] ?| )[Rr](?:ank)?[ _=:-]?(\d{1,6})\]:? ?"
)
# `[cn-3:2/8] 2026-03-02 `, ESPnet's: host, rank and number of ranks, always before a time.
_HOST_RANK_OF = regex(
    r"\[((?=[\w.-]{0,100}\d)[A-Za-z][\w.-]{1,100}):(\d{1,6})/(\d{1,6})\] (?=\d{4}-\d\d-\d\d[ T]\d\d:)"
)
_RANK_LABEL = regex(r"(?i)(?:rank|r|gpu|proc|process)[-_]?\d+$")
# What a process numbers itself with, behind the launcher's label that names the process.
_OWN_LABEL = regex(r"\[([A-Za-z]{1,10})[-_ :=]?(\d{1,6})\] ?")
# `trainer-0-2 | [rank10]: `, `node1| [rank3]: `, as docker compose labels what its containers say.
_BARRED = regex(r"([A-Za-z0-9][\w.-]{1,62}?) {0,24}\| {0,2}(?=\[(?i:rank)[ _:=-]?\d{1,6}\])")
# `docker service logs`: service, slot (or node's id) and task, the node: `train.3.k2m1vq8d0x@cn-3    | `;
# the task is left out with `--no-task-ids`.
_SWARM = regex(r"[\w.-]{1,100}\.(?:\d{1,5}|\w{1,30}\.[a-z0-9]{5,25})@([A-Za-z][\w.-]{0,100}) {1,40}\|(?: |$)")
_BAR = regex(r"([A-Za-z0-9][\w.-]{1,62}?) {0,24}\|(?: |$)")
_NO_PLACE = regex(r"(?i)(?:rank|r|w|worker|gpu|proc|process|task|log|\d*)[-_]?\d+$|[0-9a-f]{6,64}$|\D*$")
# What launchers of TPU pods put in front: `10.164.0.14 [worker:2] `; the number counts machines.
_WORKER = regex(r"((?:\d{1,3}\.){3}\d{1,3}|[A-Za-z][\w.-]{0,100}) \[worker:\d{1,5}\] ?")
# Determined's command line prints `<info>    [time] container || …`, and no word for plain output.
_LEVEL_AHEAD = regex(r"<([A-Za-z]{0,8})> +(?=\[\d{4}-\d\d-\d\d)")
_RAY_NODE = regex(r"\((?:raylet|autoscaler|scheduler)(?:, ?ip=([\w.:-]{1,60}))?[^()]{0,40}\) ?")
_RANK_PAREN = regex(r"\((?i:rank)[ _:=-]{0,2}(\d{1,6})\):? ?")
_SRUN = regex(r" {0,5}(\d{1,6}):(?: |$)")
NCCL = regex(r"([\w.-]{1,100}):(\d{1,10}):(\d{1,10}) (?:\[\d{1,4}\] )?(?=(?:\S{1,60} )?(?:\S{1,60} )?NCCL )")
_NCCL_LEVEL = regex(r"(?:\S{1,60} ){0,2}NCCL (INFO|WARN|TRACE|ABORT)")
_PRIORITY = regex(r"<(\d{1,3})>")
_FACILITY = regex(r"(?:kern|user|daemon|syslog|local\d|auth) *:(\w{3,7}) *: ")


def read_labels(text: str, position: int, columns: Columns, head: Head) -> int:
    """Read a line's launcher prefixes from `position` on into `head`; where they end."""
    size = len(text)
    if position == 0 and columns.places is not None and (place := columns.places.read(text)) is not None:
        head.host, position = place
    for _ in range(6):
        if position >= size:
            return position
        first = text[position]
        end = 0
        if first == "[":
            end = _bracket(text, position, columns, head)
        elif first == "(":
            if match := _RAY.match(text, position):
                if match[1]:
                    head.rank = int(match[1])
                head.pid = int(match[2])
                head.host = match[3] or head.host
                head.styles += ("ray",)
                end = match.end()
            elif match := _RANK_PAREN.match(text, position):
                head.rank = int(match[1])
                head.styles += ("rank paren",)
                end = match.end()
            elif match := _SKYPILOT.match(text, position):
                head.pid = int(match[2])
                head.host = match[1] or match[3] or head.host
                end = match.end()
            elif match := _RAY_NODE.match(text, position):
                head.host = match[1] or head.host
                end = match.end()
        elif first == "a" and position == 0 and (match := _ALGO.match(text)):
            head.host = match[2]
            end = match.end()
        elif first == "<":
            if match := _PRIORITY.match(text, position):
                head.level = SYSLOG_LEVELS[int(match[1]) & 7]
                end = match.end()
            elif match := _LEVEL_AHEAD.match(text, position):
                head.level = level_named(match[1])
                end = match.end()
        else:
            if columns.srun_labels and position == 0 and (match := _SRUN.match(text, 0)):
                head.rank = None if columns.srun_nodes else int(match[1])
                head.styles += ("srun",)
                end = match.end()
            elif position == 0 and "/" in text[:62] and (match := _TORCHX.match(text)):
                head.host = match[1]
                if match[2]:
                    head.local = int(match[2])
                    head.styles += ("tee",)
                end = match.end()
            elif position == 0 and "[worker:" in text[:120] and (match := _WORKER.match(text)):
                head.host = match[1]
                end = match.end()
            elif position == 0 and "|" in text[:90] and (match := _BARRED.match(text)):
                head.host = None if _NO_PLACE.match(match[1]) else match[1]
                end = match.end()
            elif position == 0 and "@" in text[:160] and (match := _SWARM.match(text)):
                head.host = match[1]
                end = match.end()
            elif position == 0 and columns.bar_labels and (match := _BAR.match(text)) is not None:
                if match[1] in columns.bar_labels:
                    head.host = match[1]
                    end = match.end()
            elif columns.host_labels:
                colon = text.find(":", position, position + 100)
                if colon > position and text[position:colon] in columns.host_labels:
                    head.host = text[position:colon]
                    head.styles += ("host label",)
                    end = colon + (2 if text[colon + 1 : colon + 2] == " " else 1)
            if not end and " NCCL " in text[:250] and (match := NCCL.match(text, position)):
                read_nccl(text, match, head)
                end = match.end()
            if not end and first in "kuldsa" and (match := _FACILITY.match(text, position)):
                head.level = level_named(match[1])
                end = match.end()
        if not end:
            return position
        position = end
    return position


def _bracket(text: str, position: int, columns: Columns, head: Head) -> int:
    """Read one bracketed prefix; 0 where the bracket is none."""
    if match := _RANK_BRACKET.match(text, position):
        head.rank = int(match[1])
        head.styles += ("rank bracket",)
        end = match.end()
        return end + 1 if text[end : end + 1] == " " else end
    following = text[position + 1 : position + 2]
    if following.isalpha():
        if "ray" in head.styles and (match := _OWN_LABEL.match(text, position)):
            head.rank = int(match[2]) if match[1] in "rR" else head.rank
            return match.end()
        if match := _ALGO.match(text, position):
            head.host = match[1]
            return match.end()
        if match := _POD.match(text, position):
            head.host = match[1]
            return match.end()
        if match := _PLACE.match(text, position):
            # YARN's containers say no host, and what numbers ranks or workers is none.
            is_host = not match[1].startswith("container_") and not _RANK_LABEL.match(match[1])
            head.host = match[1] if is_host else head.host
            return match.end()
        if (match := _HOST_AND_RANK.match(text, position)) and not counts_other(match[1]):
            head.host, head.rank = match[1], int(match[2])
            return match.end()
        match = _HOST_RANK_OF.match(text, position)
        if match and int(match[2]) < int(match[3]) and not counts_other(match[1]):
            head.host, head.rank = match[1], int(match[2])
            return match.end()
        if match := _TEE.match(text, position):
            head.local = int(match[1])
            head.styles += ("tee",)
            return match.end()
        if (match := _MPI_CRASH.match(text, position)) or (match := _UCX.match(text, position)):
            head.host, head.pid = match[1], int(match[2])
            return match.end()
    if match := _MPI.match(text, position):
        head.rank = int(match[1])
        if match[2] and match[2] != "unknown":
            head.host, head.pid = match[2], int(match[3])
        head.styles += ("mpi",)
        return match.end()
    if match := _SAGEMAKER.match(text, position):
        head.rank, head.host = int(match[1]), match[2]
        head.styles += ("mpi",)
        return match.end()
    if columns.prepended and position == 0 and (match := PREPENDED.match(text)):
        head.rank = int(match[1])
        head.styles += ("prepended",)
        return match.end()
    if columns.tee_numbers and (match := _TEE_NUMBER.match(text, position)):
        head.local = int(match[1])
        head.styles += ("tee number",)
        return match.end()
    return 0


def counts_other(name: str) -> bool:
    """Whether a name with a number counts something else than machines: `gpu-0`, `epoch3`, `run-12`."""
    return bool(_NO_PLACE.match(name) or OTHER_WORD.search(re.sub(r"[-_.]?\d+$", "", name)))


# What docker compose says of its containers as they begin and end.
_ATTACHED = regex(r"Attaching to ([\w., -]{3,4000})$")
_CONTAINER_ENDED = regex(r"([A-Za-z0-9][\w.-]{1,62}) exited with code \d{1,3}$")


def bar_labels(texts: Sequence[str]) -> Set[str]:
    """The hosts in front of a bar with which nearly all lines begin, if ranks follow behind it in some."""
    ranked = {match[1] for text in texts if "|" in text[:90] and (match := _BARRED.match(text))}
    if not ranked or any(map(_NO_PLACE.match, ranked)):
        return frozenset()
    said = [match[1] for text in texts if (match := _ATTACHED.match(text))]
    ended = [match[1] for text in texts if (match := _CONTAINER_ENDED.match(text))]
    hosts = ranked.union(ended, *(names.split(", ") for names in said))
    labelled = sum((match := _BAR.match(text)) is not None and match[1] in hosts for text in texts)
    enough = labelled * 10 >= (len(texts) - len(said) - len(ended)) * 9
    return frozenset(hosts) if enough else frozenset()


def read_nccl(text: str, match: re.Match[str], head: Head) -> None:
    """Take host, pid and level from NCCL's `host:pid:thread [device] NCCL WARN`.

    A label in front names the machine as the job's other lines do.
    """
    head.host, head.pid = head.host or match[1], int(match[2])
    head.styles += ("nccl",)
    if level := _NCCL_LEVEL.match(text, match.end()):
        head.level = {"INFO": Level.INFO, "TRACE": Level.DEBUG}.get(level[1], Level.WARNING)
