"""Whose job a scheduler's line is about: a controller's log and a namespace's events tell of all jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.intake.reading import Reading
from logtriage.localize.pods import ASSIGNED
from logtriage.model import Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role

# As controllers and the daemons of nodes name jobs: `JobId=71`, `StepId=71.0`, and `[71.batch]` at the head.
_JOB = regex(
    r"(?:\b(?:[Jj]ob|[Ss]tep)_?[Ii]d[=: ]|^\[[\d:T.-]{19,29}\] \[)(\d{1,12})(?:\b|(?=\.(?:\d|batch|extern)))"
)
# What files and lines of a job's own call it, where nothing else can be meant.
_CALLED = regex(r"(?i)(?:\bslurm[-_]?job[-_]?id|\bjob ?id|(?:^|/)slurm[-_])[=: ]{0,3}(\d{4,12})(?!\d)")
RELATED = 64  # numbers so near may be parts of one job: of an array, of several components
_NUMBER = regex(r"(?<!\d)\d{3,12}(?!\d)")
# What a job's own lines say of its number stands right behind such a word; any other number can be another
# job's by chance, of the many that steps and samples carry.
_OWN_NUMBER = regex(r"(?i)(?:\bjob|slurm|\bstepid|\*\*\* step|\bid)[^\d\n]{0,24}(\d{3,12})(?!\d)")
_POD = regex(r"\bpod/([a-z0-9][\w.-]{0,250})")
_NODE = regex(r"\bnode/([a-z0-9][\w.-]{0,250})")
_EVENT = regex(r"\b(?:Normal|Warning)\s+\w+\s+(?:pod|node|job|pytorchjob|persistentvolumeclaim)/")
# What an event is about, of those that are a whole job.
_OBJECT = regex(r"\b(?:Normal|Warning)\s+\w+\s+(?:(?:py)?torch|mpi|tf|ray)?job/([a-z0-9][\w.-]{0,250})")
EVENTS = 3  # a file with so many of kubectl's events is a namespace's
# Operators name the pods of a job alike: NAME-worker-3, NAME-master-0, NAME-launcher-x7k2p.
_MEMBER = regex(r"^(?P<job>.+?)-(?:worker|master|launcher|chief|ps|head|replica|trainer|node)-[a-z0-9-]+$")
_NUMBERED = regex(r"^(?P<job>.+?)-\d{1,5}(?:-[a-z0-9]{5})?$")
_DRAWN_END = regex(r"-[a-z0-9]{5}$")  # by Kubernetes
MANY_JOBS = 3  # a log that names so many is a controller's, not one job's record


@dataclass(frozen=True, slots=True)
class OtherJobs:
    """The numbers that a scheduler's logs name, and those of them that the job's own files know."""

    named: frozenset[str]
    own: frozenset[str]
    pods: frozenset[str]  # the job's pods without their numbers; empty where no file tells
    files: frozenset[str]  # the records that may be of several jobs
    nodes: frozenset[str] = frozenset()  # where the job's pods ran; empty unless all are known
    called: frozenset[int] = frozenset()  # the job's number as its own files state it

    def concern(self, line: Line, role: Role) -> bool:
        """Whether what a line says is about another job; of unknown jobs, only failures count."""
        if line.file not in self.files:
            return False
        if self.pods and (pods := _POD.findall(line.text[:2000])):
            return not any(_family(pod) in self.pods for pod in pods)
        if self.pods and (named := _OBJECT.search(line.text[:600])) is not None:
            mine = (named[1].startswith(pod) or pod.startswith(named[1]) for pod in self.pods)
            return not any(mine)
        if self.nodes and (nodes := _NODE.findall(line.text[:2000])):
            return self.nodes.isdisjoint(nodes)
        whose, _, _ = line.text[:2000].partition(" to reclaim resources")  # behind it stands for whom
        numbers = set(_JOB.findall(whose))
        if not numbers:
            return False
        if self.called and not numbers & self.own:
            return all(abs(int(number) - own) > RELATED for number in numbers for own in self.called)
        if len(self.named) < MANY_JOBS:
            return False
        return not numbers & self.own if self.own else role in (Role.PROGRESS, Role.CONTEXT)


def is_event(line: Line) -> bool:
    """Whether a line is one of those that kubectl prints of a namespace's events."""
    return _EVENT.search(line.text[:200]) is not None


def _family(pod: str) -> str:
    found = _MEMBER.match(pod) or _NUMBERED.match(pod)
    return found["job"] if found else pod


def _own_pods(readings: Sequence[Reading], files: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Families of the pods that left a file here, or that such files name, and the nodes of all their pods.

    No family where no file is named after a pod; no node where one pod's is not told.
    """
    names = [reading.source.file for reading in readings if reading.source.file not in files]
    words = {word for name in names for word in re.split(r"[/_]|\.(?:log|txt|out|err)\b", name)}
    named: set[str] = set()
    told_of: set[str] = set()  # by the job's own files
    placed: dict[str, set[str]] = {}
    for reading in readings:
        for line in reading.lines:
            if "pod/" not in line.text:
                continue
            if reading.source.file not in files:
                told_of.update(_POD.findall(line.text[:200]))
                continue
            named.update(_POD.findall(line.text[:2000]))
            if (told := ASSIGNED.search(line.text[:2000])) is not None:
                placed.setdefault(told["pod"], set()).add(told["node"])
    based = named | {_DRAWN_END.sub("", pod) for pod in named}
    own = {word for word in words if word in based or (named and _MEMBER.match(word))} | (told_of & named)
    if named and not own:
        own = _mentioned(words, readings, files)
    # A namespace may have no word on the job's pods, which its own record counts.
    counted = Counter(_family(pod) for pod in told_of) if named and not own else Counter[str]()
    families = frozenset((*map(_family, own), *(row for row, pods in counted.items() if pods > 1)))
    members = own | {pod for pod in named if _family(pod) in families}
    if not members <= placed.keys():
        return families, frozenset()
    return families, frozenset().union(*(placed[pod] for pod in members))


LEAST_PODS = 2  # that left a file each and whose names stand in one of another name
MENTIONS = 200  # first lines of a file in which they are sought


def _mentioned(words: set[str], readings: Sequence[Reading], records: frozenset[str]) -> set[str]:
    """Of what files are named after the pods: numbered alike, and told of by a record of the job's own."""
    rows: dict[str, set[str]] = {}
    for word in words:
        if "-" in word and (row := _NUMBERED.match(word)) is not None:
            rows.setdefault(row["job"], set()).add(word)
    alike = {word for row in rows.values() if len(row) >= LEAST_PODS for word in row}
    told = {
        word
        for reading in readings
        if alike and reading.source.file not in records and reading.source.role is not SourceRole.KERNEL
        for line in reading.lines[:MENTIONS]
        for word in _WORD.findall(line.text[:400])
        if word in alike and word not in reading.source.file
    }
    return told if len(told) >= LEAST_PODS else set()


_WORD = regex(r"[a-z0-9][\w.-]{3,250}")


def _records(readings: Sequence[Reading]) -> frozenset[str]:
    return frozenset(
        reading.source.file
        for reading in readings
        if reading.source.role in (SourceRole.SCHEDULER, SourceRole.KUBERNETES)
        or sum(_EVENT.search(line.text[:200]) is not None for line in reading.lines[:60]) >= EVENTS
    )


def other_jobs(readings: Sequence[Reading]) -> OtherJobs:
    """Job numbers of controllers' logs held against the names and lines of the job's own files."""
    files = _records(readings)
    pods, nodes = _own_pods(readings, files)
    named = {
        number
        for reading in readings
        if reading.source.role is SourceRole.SCHEDULER
        for line in reading.lines
        if "ob" in line.text or "tep" in line.text
        for number in _JOB.findall(line.text[:2000])
    }
    if not named:
        return OtherJobs(frozenset(), frozenset(), pods, files, nodes)
    called = _called(readings)
    if len(named) < MANY_JOBS:
        own = frozenset(number for number in named if int(number) in called)
        return OtherJobs(frozenset(named), own, pods, files, nodes, called)
    known: set[str] = set()
    for reading in readings:
        if reading.source.role is SourceRole.SCHEDULER:
            continue
        known.update(_NUMBER.findall(reading.source.file))
        for line in (*reading.lines[:200], *reading.lines[-200:]):
            text = line.text[:400]
            lower = text.lower()
            if "job" in lower or "slurm" in lower or ("step" in lower and ("id" in lower or "***" in lower)):
                known.update(_OWN_NUMBER.findall(text))
    return OtherJobs(frozenset(named), frozenset(named & known), pods, files, nodes, called)


def _called(readings: Sequence[Reading]) -> frozenset[int]:
    """The number by which the job's own files and lines call it, if they all agree."""
    found: set[str] = set()
    for reading in readings:
        if reading.source.role in (SourceRole.SCHEDULER, SourceRole.KERNEL):
            continue
        found.update(_CALLED.findall(reading.source.file))
        for line in reading.lines[:200]:
            if "ob" in line.text[:400] or "SLURM" in line.text[:400]:
                found.update(_CALLED.findall(line.text[:400]))
    return frozenset(map(int, found)) if len(found) == 1 else frozenset()
