"""What is one job below a folder: a subfolder that holds logs, or files that share a job's id in their names.

Decided by names alone, so that a tree of many thousand jobs is listed without opening a file. Links to
folders are not followed: a job that is linked from elsewhere would be triaged twice.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.identity import identify, identify_all
from logtriage.sources.job import KnownJob

SOURCE = "below"  # the name of this source: jobs below the folder that was asked about
DEEPEST = 8  # folders between the root and a job

_LOG_NAME = re.compile(
    r"(?i)\.(?:log|out|err|jsonl|stdout|stderr|dmesg|output|console|trace|journal)"
    r"(?:[-._]\d{1,14})?(?:\.(?:gz|zst|xz|bz2|zip))?$"
    r"|\.(?:tar|tgz|tar\.\w{2,3}|tbz2?|txz|zip)$|\.log[-._][\w.-]{1,40}$"
)
# What may be a log or something that lies beside jobs: notes.txt; rank_0, dmesg, stdout; trace_rank_0.json.
_DOUBTFUL = re.compile(
    r"(?i)(?:\.txt(?:[-._]\d{1,14})?|^[^.]+|(?:rank|trace|dump)[^.]{0,80}\.json)(?:\.(?:gz|zst|xz|bz2))?$"
)
_NO_LOG = re.compile(r"(?i)^(?:readme|licen[cs]e|notice|makefile|dockerfile|requirements|changelog|todo)\b")
# Folders inside a job, none of them a job: what holds its ranks, streams, machines and pods.
_INNER = re.compile(
    r"(?i)^(?:logs?|outputs?|std(?:out|err|io)|ranks?|nodes?|hosts?|workers?|pods?|sys(?:tem)?|kernel|dmesg|console"
    r"|launcher|torchelastic|nccl|dumps?|flight[-_]?recorder|stacks?|scheduler|slurm|k8s|kubernetes|events|attempts?)$"
)
_NUMBER = re.compile(r"\d{1,4}")
_CONTAINER = re.compile(r"(?i)^(?:logs?|outputs?|results|runs|jobs|experiments)$")
# A number in a file's name is a job's id where the name says so, where it begins the name (4812.out,
# 4812_0_log.err), or where it ends it and no rank, process or machine is counted there.
_JOB_IDS = (
    re.compile(r"(?i)^slurm[-_](?P<id>\d+(?:_\d+)?)(?=\D|$)"),
    re.compile(r"(?i)(?:^|[-_.])job(?:[-_.]?id)?[-_.=]?(?P<id>\d+)(?=\D|$)"),
    re.compile(r"^(?P<id>\d{3,})(?:[_.-]|$)"),
    re.compile(r"(?i)^(?!.*(?:rank|pid|worker|node|host|gpu|core|proc|nccl|tfevents|step|iter|epoch|part))"
               r"[a-z].*?[-_.](?P<id>\d{4,})(?:[-_]\d{1,4})?\.(?:out|err|log|txt|o|e)\b"),
)  # fmt: skip
_DATE = re.compile(r"(?:19|20)\d{2}(?:[01]\d(?:[0-3]\d)?)?")


@dataclass(frozen=True, slots=True)
class Listing:
    """The jobs below a folder in the order of their names, and what lies beside them and belongs to none."""

    jobs: tuple[KnownJob, ...]
    loose: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    logs: tuple[str, ...]  # names of files that may be logs
    are_sure: bool  # some of them can hardly be anything else
    folders: tuple[str, ...]


def jobs_below(root: Path) -> Listing:
    """The jobs below a folder. Raises OSError where the folder itself cannot be listed."""
    loose: list[str] = []
    found = list(_jobs(_listed(str(root)), str(root), 0, loose))
    return Listing(tuple(sorted(found, key=lambda job: _natural(job.id))), tuple(loose))


def _natural(text: str) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d{1,18})", text)
    return [(1, int(one), "") if one.isdecimal() and one.isascii() else (0, 0, one) for one in pieces]


def _listed(path: str) -> _Folder:
    logs, folders, are_sure = [], [], False
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file() and not _NO_LOG.match(entry.name):
                if is_sure := _LOG_NAME.search(entry.name) is not None:
                    are_sure = True
                if is_sure or _DOUBTFUL.search(entry.name):
                    logs.append(entry.name)
    return _Folder(path, tuple(sorted(logs)), are_sure, tuple(sorted(folders)))


def _jobs(folder: _Folder, root: str, depth: int, loose: list[str]) -> Iterator[KnownJob]:
    """The jobs in a folder; until the first one is told apart, `folder` is as good a root as the root."""
    inner = _inner(folder.folders)
    others = [name for name in folder.folders if name not in inner]
    groups = _by_job(folder.logs)
    if len(groups) > 1 and (not depth or (not inner and sum(map(len, groups.values())) == len(folder.logs))):
        order = {job_id: place for place, job_id in enumerate(groups)}
        for name in others:  # a folder belongs to the first job whose id it is named after
            if named := order.keys() & set(re.findall(r"\d+(?:_\d+)?", name)):
                groups[min(named, key=order.__getitem__)].append(name)
        for job_id, names in groups.items():
            yield _job(folder.path, root, job_id, names)
        taken = {name for names in groups.values() for name in names}
        others = [name for name in others if name not in taken]
        left = [name for name in (*folder.logs, *inner) if name not in taken]  # of which job nobody can say
        loose += [_shown(f"{folder.path}/{name}", root) for name in left]
    elif folder.logs:
        # Logs beside other folders: at the root these are the jobs, below it they belong to the same job.
        if not others or (depth and (folder.are_sure or not _holds_logs(folder, depth))):
            yield _job(folder.path, root)
            return
        loose += [_shown(f"{folder.path}/{name}", root) for name in folder.logs]
    elif inner and (depth or (len(inner) > 1 and not others)):
        if _holds_logs(folder, depth):
            yield _job(folder.path, root)
        return
    else:
        others = list(folder.folders)
    if depth < DEEPEST:
        for name in others:
            try:
                below = _listed(f"{folder.path}/{name}")
            except OSError:
                loose.append(_shown(f"{folder.path}/{name}", root))
                continue
            is_container = not depth and len(folder.folders) == 1 and _CONTAINER.match(name) is not None
            yield from _jobs(below, root, 0 if is_container else depth + 1, loose)


def _by_job(names: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if job_id := _job_id(name):
            groups[job_id].append(name)
    return groups


def _job_id(name: str) -> str:
    for pattern in _JOB_IDS:
        found = pattern.search(name[:300])
        if found and not _DATE.fullmatch(found["id"]):
            return found["id"]
    return ""


def _inner(names: Sequence[str]) -> list[str]:
    """The folders that are parts of a job rather than jobs: its streams, ranks, machines, attempts."""
    numbers = sorted(int(each) for each in names if _NUMBER.fullmatch(each))
    are_counted = numbers == list(range(len(numbers)))
    likely = identify_all(f"{each}/stdout.log" for each in names)

    def is_inner(name: str) -> bool:
        if _INNER.match(name):
            return True
        known = identify(f"{name}/stdout.log")
        if (known.rank, known.local_rank, known.node_rank, known.attempt, known.host) != (None,) * 5:
            return True
        if _NUMBER.fullmatch(name):
            return are_counted
        if re.search(r"\d{4,}$", name):
            return False  # a job's number, not a machine's
        return likely[f"{name}/stdout.log"].host is not None

    return [name for name in names if is_inner(name)]


def _holds_logs(folder: _Folder, depth: int) -> bool:
    for name in folder.folders:
        try:
            inner = _listed(f"{folder.path}/{name}")
        except OSError:
            continue
        if inner.logs or (depth < DEEPEST and _holds_logs(inner, depth + 1)):
            return True
    return False


def _job(folder: str, root: str, job_id: str = "", names: Sequence[str] = ()) -> KnownJob:
    shown = _shown(folder, root)
    key = "/".join(part for part in (shown, job_id) if part not in ("", ".")) or Path(root).name or root
    paths = tuple(f"{folder}/{name}" for name in names) or (folder,)
    return KnownJob(id=key, source=SOURCE, name=key.rsplit("/", 1)[-1], paths=paths)


def _shown(path: str, root: str) -> str:
    """A path relative to the root, with bytes that are no text made visible."""
    return os.fsencode(os.path.relpath(path, root)).decode("utf-8", "backslashreplace")
