"""Jobs whose logs lie below configured folders: `/logs/{job_id}*`, `/logs/{user}/{name}-{job_id}/`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from logtriage.sources.grouping import jobs_below, roots_of
from logtriage.sources.job import KnownJob, SourceFault
from logtriage.sources.likeness import fit, order
from logtriage.sources.patterns import Entry, Match, Pattern, read_pattern
from logtriage.sources.roots import below, is_path

_MOST_LOOKED_AT = 5_000  # files of one job whose time is asked for


def _checked(text: str) -> str:
    path = os.path.expanduser(text)  # noqa: PTH111 - a trailing slash means something
    if not path.startswith("/"):
        raise ValueError("the pattern must begin with / or ~/")
    read_pattern(path)
    return path


class Folders(BaseModel):
    """The source `kind = "folders"`. Of a job it knows what the pattern tells and when its logs last changed.

    Only what lies below the fixed part of a pattern is ever named, links resolved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["folders"] = "folders"
    name: str = Field(default="folders", pattern=r"^[A-Za-z0-9][\w.-]*$")
    patterns: tuple[Annotated[str, AfterValidator(_checked)], ...] = Field(
        min_length=1, description="folders or files of a job, with {job_id}, {name}, {user} and *"
    )

    def find(self, asked: str, limit: int) -> list[KnownJob]:
        """Jobs whose id, name, user or path is `asked`, best and newest first."""
        if is_path(asked):
            return self._at(asked)
        found = [
            replace(job, ended=max(map(_changed, job.paths)) or None)
            for job in self.known()
            if fit(job, asked) is not None
        ]
        found.sort(key=lambda job: order(job, asked))
        return sorted(map(_dated, found[:limit]), key=lambda job: order(job, asked))

    def ended(self, since: float) -> Iterator[KnownJob]:
        """Jobs whose logs last changed at `since` or later; a job that goes on writing is among them."""
        for job in map(_dated, self.known()):
            if job.ended is not None and job.ended >= since:
                yield job

    def collect(self, job: KnownJob, folder: Path) -> tuple[str, ...]:
        """The paths that are still there."""
        kept = tuple(path for path in job.paths if below(path, self.roots))
        if not kept:
            raise SourceFault(f"the logs of job {job.id} are gone")
        return kept

    @property
    def roots(self) -> tuple[str, ...]:
        return roots_of(self.patterns)

    def faults(self) -> list[str]:
        """What keeps it from answering, one line each."""
        return [
            f"{root}: {'no such folder' if not Path(root).is_dir() else 'may not be entered'}"
            for root in self.roots
            if not (Path(root).is_dir() and os.access(root, os.R_OK | os.X_OK))
        ]

    def known(self) -> list[KnownJob]:
        """All jobs by their names, without a look at their logs."""
        return jobs_below(self.patterns, self.name, self._listed)

    def _listed(self, folder: str) -> Iterator[Entry]:
        """The entries of a folder below a root; below that a folder may be closed, or gone again."""
        try:
            listing = os.scandir(folder)
        except OSError as fault:
            if folder in self.roots:
                raise SourceFault(f"{folder} cannot be listed: {fault.strerror}") from None
            return
        with listing:
            for entry in listing:
                if entry.name.startswith("."):
                    continue
                path = below(entry.path, self.roots) if entry.is_symlink() else entry.path
                if path is None:
                    continue
                name = entry.name.encode("utf-8", "replace").decode()
                yield Entry(name, path, entry.is_dir())

    def _at(self, asked: str) -> list[KnownJob]:
        """The job that a path is, or lies in; one that no pattern knows is named after its last level."""
        places = [asked] if asked.startswith("/") else [f"{root}/{asked}" for root in self.roots]
        real = next((path for path in (below(place, self.roots) for place in places) if path), None)
        if real is None or real in map(os.path.realpath, self.roots):
            return []  # a root holds many jobs
        for pattern in map(read_pattern, self.patterns):
            match = _owner(pattern, real)
            if match is not None:
                found = [job for job in self.known() if match.entry.path in map(os.path.realpath, job.paths)]
                if found:
                    return [_dated(found[0])]
        return [_dated(KnownJob(Path(real).name, self.name, paths=(real,)))]


def _owner(pattern: Pattern, real: str) -> Match | None:
    """The match of the folder or file that `real` is, or lies in."""
    top = os.path.realpath(pattern.root)
    if not real.startswith(top + "/"):
        return None
    names = tuple(real[len(top) + 1 :].split("/")[: len(pattern.levels)])
    path = "/".join((top, *names))
    return pattern.match(Entry(names[-1], path, Path(path).is_dir()), names)


def _dated(job: KnownJob) -> KnownJob:
    """The job with the time at which the newest of its files changed, of the first few thousand."""
    newest = job.ended or 0.0
    waiting = [path for path in job.paths if Path(path).is_dir()]
    if len(waiting) < len(job.paths):
        newest = max([newest, *(_changed(path) for path in job.paths if path not in waiting)])
    seen = 0
    while waiting and seen < _MOST_LOOKED_AT:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
        except OSError:
            continue
    return replace(job, ended=newest or None)


def _changed(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return 0.0
