"""Ends that a starter announces in words that no rule knows: a lost node, a preemption, time that is used up.

Starters and schedulers are many, and each says it its own way. But what they announce is of few kinds, said
in general words beside those of a component; it stands in a file of no rank, was never said while the job
was well, and comes when the steps end. A lost machine is one of the job's that wrote nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from logtriage.intake.reading import Reading
from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import key_of
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

_OF_STARTERS = (SourceRole.MERGED, SourceRole.LAUNCHER, SourceRole.ENVIRONMENT)
BEFORE_SECONDS = 5.0  # clocks of two files differ
AT_ONCE_SECONDS = 300.0  # after the last step, in which a scheduler's decision takes effect
MOST_SECONDS = 3600.0  # in which a machine is given up
SILENT_SECONDS = 20.0  # a machine wrote nothing for so long when it is given up
MOST_LINES = 4_000  # of a starter's file that are looked at, its last ones

_WORDS = regex(r"(?i)pre-?empt|reclaim|priorit|displac|evict|limit|wall|time|deadline|durat|reserv")
_PREEMPTED = regex(
    r"(?i)\b(?:pre-?empted\b|pre-?emption (?:of|by|notice)|reclaimed (?:by|for|from)|displaced by"
    r"|evicted (?:by|for|in favou?r)|(?:stopped|suspended|requeued|cancel+ed|removed|killed) "
    r"(?:by|for|in favou?r of) (?:\w+ ){0,3}(?:higher|urgent)[- ]priority)"
)
_OF_TIME = (
    r"(?:time[- ]?(?:limit|out|slice)|wall[- ]?(?:clock|time)|run[- ]?time|elapsed?(?: time)?|duration"
    r"|life[- ]?time|deadline|reserv\w+|RuntimeMaxSec|max\w{0,3}_(?:run|time|duration)\w*)"
)
_USED_UP = r"(?:exceed\w*|reached|expired|elapsed|over(?:run)?|passed|hit|used up|up|ran out|run out)"
_TIME_LIMIT = regex(
    rf"(?i)\b{_OF_TIME}\b[^\n]{{0,60}}?\b{_USED_UP}\b|\b{_USED_UP}\b[^\n]{{0,40}}?\b{_OF_TIME}\b"
)
_OTHER_LIMIT = regex(
    r"(?i)\b(?:memory|disk|quota|storage|retr(?:y|ies)|attempts?|connect\w*|request|response|rpc|http|collective"
    r"|nccl|heart-?beat|keep-?alive|poll\w*)\b"
)
_GONE = regex(
    r"(?i)\b(?:(?:down|dead|lost|offline|unreachable|unresponsive|suspected|gone|disappeared|vanished)\b"
    r"|(?:not|no longer|stopped|ceased|does not|did not) (?:respond|answer|reach|repl)\w*"
    r"|(?:no|lost|missed|without)(?: \w+)? (?:contact|connection|heart-?beats?|answer|reply|response"
    r"|keep-?alive|route|carrier|sign of life)|heart-?beats? (?:fail|lost|miss|expir|time)\w*"
    r"|NODE_DOWN|(?:ping|connect\w*|ssh)\b[^\n]{0,20} timed? ?out|Timeout, server)"
)
_NEGATED = regex(
    r"(?i)\b(?:not|never|no|if|may|can|could|would|when|unless|non)[- ](?:be(?:en)? |yet |is |was )?$"
)
_TITLES = {
    "scheduler.preempted": "The starter says that the job was preempted",
    "scheduler.time_limit": "The starter says that the job's time was used up",
}


def announced_ends(
    scene: Scene, progress: Progress, topology: Topology, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Candidates for ends that starters' files announce, where no rule knows the words."""
    ended = progress.last_time
    if ended is None:
        return []
    told = {(each.line.file, each.line.number) for each in candidates if not _is_consequence(each)}
    known = {
        each.failure_type
        for each in candidates
        if each.role is Role.CAUSE
        and each.strength is not Strength.HINT
        and not each.recovered
        and each.source_role not in (SourceRole.KERNEL, SourceRole.HARDWARE)
    }
    found: list[Candidate] = []
    for reading in starters(scene, progress, topology):
        for line in new_since(reading, ended - BEFORE_SECONDS):
            if (line.file, line.number) in told:
                continue
            announced = _announced(line, ended, scene, topology)
            if announced is None or announced.failure_type in known:
                continue
            failure_type, host, since = announced
            found.append(
                Candidate(
                    failure_type=failure_type,
                    role=Role.CAUSE,
                    strength=Strength.LIKELY,
                    title=_TITLES.get(failure_type, f"The starter says that {host} is lost"),
                    line=line,
                    time=since,
                    rank=None,
                    host=host,
                    attempt=line.attempt,
                    source_role=SourceRole.LAUNCHER,
                )
            )
    return found


def _is_consequence(candidate: Candidate) -> bool:
    return candidate.failure_type.startswith("process.") or candidate.strength is Strength.HINT


def starters(scene: Scene, progress: Progress, topology: Topology) -> list[Reading]:
    """The files of the job that are of no rank and no machine, and tell of no step."""
    stepped = {trace.file for trace in progress.traces}
    return [
        reading
        for reading in scene.readings
        if reading.source.file not in stepped and _is_of_a_starter(reading, topology)
    ]


def _is_of_a_starter(reading: Reading, topology: Topology) -> bool:
    """Whether a file is of no rank and no machine of the job."""
    source = reading.source
    if source.role not in _OF_STARTERS or source.rank is not None or source.file in topology.rank_of_file:
        return False
    host = topology.host_of_file.get(source.file)
    if (
        host is not None
        and len(topology.hosts) > 1
        and (host in topology.host_of_rank.values() or not topology.host_of_rank)
    ):
        return False  # but not where its name alone looks like that of a machine
    return all(line.rank is None for line in reading.lines[:: max(1, len(reading.lines) // 64)])


def new_since(reading: Reading, time: float) -> Iterator[Line]:
    """The lines of a file since a time, of kinds that it did not have before."""
    before: set[bytes] = set()
    for line in reading.lines[-MOST_LINES:]:
        if line.time is None or line.time < time:
            before.add(key_of(line.text))
        elif key_of(line.text) not in before:
            yield line


class _Announced(NamedTuple):
    """The type of an end, the machine that is lost, and since when."""

    failure_type: str
    host: str | None
    since: float


def _announced(line: Line, ended: float, scene: Scene, topology: Topology) -> _Announced | None:
    """What a line announces; a machine is lost since it wrote its last line."""
    text, time = line.text[:600], line.time
    if time is None or time > ended + MOST_SECONDS:
        return None
    if (gone := _GONE.search(text)) is not None and not _NEGATED.search(text[: gone.start()]):
        lost = [
            (host, since)
            for host in _named(text, topology)
            if (since := last_written(host, scene, topology)) is not None and since <= time - SILENT_SECONDS
        ]
        if len(lost) == 1:  # of two machines one tells of the other
            return _Announced("host.node_lost", *lost[0])
    if time > ended + AT_ONCE_SECONDS or not _WORDS.search(text):
        return None
    for failure_type, form in (("scheduler.preempted", _PREEMPTED), ("scheduler.time_limit", _TIME_LIMIT)):
        said = form.search(text)
        if said is None or _NEGATED.search(text[: said.start()]):
            continue
        if failure_type == "scheduler.time_limit" and _OTHER_LIMIT.search(text):
            continue
        return _Announced(failure_type, None, time)
    return None


def _named(text: str, topology: Topology) -> set[str]:
    """The machines of the job that a text names, by their names or their addresses."""
    words = {word.rstrip(".") for word in re.findall(r"[A-Za-z0-9][\w.-]{1,100}", text)}
    hosts = {topology.machine(topology.host_named.get(word, word)) for word in words & _names(topology)}
    hosts |= {topology.host_of_address[word] for word in words & topology.host_of_address.keys()}
    return {host for host in hosts if host is not None}


def _names(topology: Topology) -> set[str]:
    return {*topology.hosts, *topology.host_named, *topology.node_of_pod}


def last_written(host: str, scene: Scene, topology: Topology) -> float | None:
    """When the job's own files of a machine were last written; its kernel may speak again once it is back."""
    ends: list[float] = []
    for reading in scene.readings:
        file = reading.source.file
        if reading.source.role not in JOB_ROLES:
            continue
        rank = topology.rank_of_file.get(file)
        of_rank = topology.host_of_rank.get(rank) if rank is not None else None
        if topology.machine(topology.host_of_file.get(file) or of_rank) == host:
            ends += (line.time for line in reading.lines[-64:] if line.time is not None)
    if not ends:  # files that are named after nobody, whose lines tell their ranks
        ends += (
            line.time
            for reading in scene.readings
            if reading.source.role in JOB_ROLES
            for line in reading.lines[-64:]
            if line.time is not None
            and (writer := topology.rank(line)) is not None
            and topology.machine(topology.host_of_rank.get(writer)) == host
        )
    return max(ends, default=None)
