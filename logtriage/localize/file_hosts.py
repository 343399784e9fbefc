"""Hosts of files that are called after none: by what their lines begin with, by NCCL, by blocks of ranks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import pairwise

from logtriage.intake.names import OTHER_WORD
from logtriage.localize.host_tables import TABLE_LINES
from logtriage.localize.processes import OF_NCCL
from logtriage.localize.prompts import prompted_hosts
from logtriage.localize.rosters import is_host
from logtriage.localize.scene import Scene
from logtriage.localize.writer_labels import constant_label
from logtriage.model import JOB_ROLES, SourceRole
from logtriage.regex import regex

# Words with a number that count something else than machines.
_COUNTED = regex(
    r"(?i)(?:rank|worker|w|gpu|npu|cuda|device|proc|process|task|step|epoch|run|attempt|job|pod|actor|stage|[ptdec]p"
    r"|log|out|err|part|node|host|r|v|std\w+)?[-_]?\d+$"
)
LABELLED = 0.8  # of a file's lines begin with its host; what a launcher or a traceback adds at the end …
LABELLED_BESIDE = 0.4  # … may be more than half of a file beside one that is labelled throughout


def machine_files(scene: Scene, said: Collection[str] | None = None) -> dict[str, str]:
    """Hosts of machines' own logs that are called after words which tell no host, but the job's lines do.

    `said` are the hosts that the job's lines name, where they are known already.
    """
    stems = {
        source.file: source.file.rsplit("/", 1)[-1].split(".", 1)[0]
        for source in scene.sources
        if source.role in (SourceRole.KERNEL, SourceRole.HARDWARE) and source.host is None
    }
    if not stems:
        return {}
    if said is None:
        said = {
            line.host
            for reading in scene.readings
            if reading.source.role in JOB_ROLES
            for line in reading.lines
            if line.host is not None
        }
    return {file: stem for file, stem in stems.items() if stem in said}


def labelled_hosts(scene: Scene) -> dict[str, str]:
    """Hosts of files that are named after a word with which their lines begin, where several files are so.

    `train.c7.out` with lines of `20:01:02 [c7] …` beside `train.c8.out` with `[c8]`.
    """
    if (lone := _named_in_nccl(scene)) and set(lone.values()) <= _machines(scene):
        return lone  # what labels call a replica runs on a machine that left its own log
    found: dict[str, str] = {}
    beside: dict[str, str] = {}
    for reading in scene.readings:
        source = reading.source
        if source.host is not None or source.rank is not None or source.role is not SourceRole.MERGED:
            continue
        name = source.file.rsplit("/", 1)[-1]
        parts = (*re.split(r"[._]", name), name.rsplit(".", 1)[0])
        words = {each for each in parts if re.search(r"\d", each)}
        texts = [line.text[:60] for line in reading.lines[:TABLE_LINES] if line.text.strip()]
        for word in sorted(words):
            if len(word) < 2 or not _HOST_WORD.match(word) or _COUNTED.match(word):
                continue
            said = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
            count = sum(said.search(text) is not None for text in texts)
            if len(texts) > 4 and count >= LABELLED * len(texts):
                found[source.file] = word
            elif len(texts) > 4 and count >= LABELLED_BESIDE * len(texts):
                beside[source.file] = word
    if found:
        found = {**beside, **found}
    if _are_of_one_row(found):
        return found
    if lone := _lone_machines(scene):
        return lone
    labels = _by_labels(scene)
    if _are_of_one_row(labels):
        return labels
    return _named_in_nccl(scene) or prompted_hosts(scene) or _by_blocks(scene)


def _machines(scene: Scene) -> set[str | None]:
    """The machines that left logs of their own."""
    of_files = set(machine_files(scene).values())
    return of_files | {source.host for source in scene.sources if source.role not in JOB_ROLES}


def _lone_machines(scene: Scene) -> dict[str, str]:
    """Hosts of files in each of which one machine alone names itself, another in each, with kernel logs."""
    by_machines = _machines(scene)
    named = {
        reading.source.file: {line.host for line in reading.lines if line.host is not None}
        for reading in scene.readings
        if reading.source.role is SourceRole.MERGED and reading.source.host is None
    }
    lone = {file: str(*hosts) for file, hosts in named.items() if len(hosts) == 1 and hosts <= by_machines}
    return lone if len(set(lone.values())) == len(lone) > 1 else {}


def _named_in_nccl(scene: Scene) -> dict[str, str]:
    """Hosts of files that are named after none, in each of which NCCL names another one machine."""
    found: dict[str, str] = {}
    for reading in scene.readings:
        if reading.source.host is not None or reading.source.role is not SourceRole.MERGED:
            continue
        said = (OF_NCCL.search(line.text[:300]) for line in reading.lines if " NCCL " in line.text[:300])
        hosts = {told["host"] for told in said if told is not None}
        if len(hosts) == 1:
            found[reading.source.file] = hosts.pop()
    return found if len(set(found.values())) == len(found) > 1 else {}


def _are_of_one_row(hosts: Mapping[str, str]) -> bool:
    """Whether files have several hosts, whose names differ in their numbers alone."""
    return len(set(hosts.values())) > 1 and len({re.sub(r"\d+", "#", host) for host in hosts.values()}) == 1


def _by_labels(scene: Scene) -> dict[str, str]:
    """Hosts of files whose lines begin with one label: rank files with `[cn-3:0] …` beside `[cn-4:0] …`."""
    labels = {
        reading.source.file: constant_label(reading.lines)
        for reading in scene.readings
        if reading.source.host is None and reading.source.role in JOB_ROLES
    }
    return {file: host for file, host in labels.items() if host is not None}


def _by_blocks(scene: Scene) -> dict[str, str]:
    """Hosts of files of one numbered row in which ranks speak that follow each other from file to file:
    cn-a1.log with `[rank0]` to `[rank7]`, cn-a2.log with `[rank8]` to `[rank15]`. Where no line tells a rank,
    so many files of a row as no job has that runs on one machine.
    """
    rows: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    numbered: dict[str, dict[str, str]] = defaultdict(dict)
    for reading in scene.readings:
        source = reading.source
        stem = source.file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        stem = _OF_A_LAUNCHER.sub("", stem)
        if source.host is not None or source.rank is not None or source.role is not SourceRole.MERGED:
            continue
        if not _HOST_WORD.match(stem) or not re.search(r"\d$", stem) or _COUNTED.match(stem):
            continue
        if _OF_A_JOB.search(stem):
            continue
        ranks = {line.rank for line in reading.lines if line.rank is not None}
        if not ranks and "-" in stem and is_host(stem):
            numbered[re.sub(r"\d+$", "", stem)][source.file] = stem
        if len(ranks) > 1:
            rows[re.sub(r"\d+$", "", stem)][source.file] = (min(ranks), max(ranks))
    found: dict[str, str] = {
        file: stem for row in numbered.values() if len(row) >= LEAST_ROW for file, stem in row.items()
    }
    for base, row in rows.items():
        blocks = sorted(row.values())
        apart = all(last < first for (_, last), (first, _) in pairwise(blocks))
        if len(row) > 1 and apart and not OTHER_WORD.search(base.rstrip("-_.")):
            found |= {file: _OF_A_LAUNCHER.sub("", file.rsplit("/", 1)[-1].rsplit(".", 1)[0]) for file in row}
    return found


LEAST_ROW = 3  # files

# What wrote a file, before the host that it is called after: torchrun_cn-3.log.
_OF_A_LAUNCHER = regex(
    r"(?i)^(?:torchrun|deepspeed|accelerate|mpirun|srun|launch(?:er)?|agent|elastic)[-_.](?=\D)"
)
# Slurm's `log-%x_%j_%n.out` names the job and counts its nodes.
_OF_A_JOB = regex(r"(?i)(?:^|[-_.])(?:logs?|out|err|std(?:out|err)|slurm|job|\d{4,12})[-_.]")
_HOST_WORD = regex(r"(?=[\w.-]*[A-Za-z])[\w-][\w.-]{1,100}$")
