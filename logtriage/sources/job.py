"""What a source knows of one job, and what every source can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SourceFault(Exception):
    """A source cannot be asked: no tool, or an error as its answer; the message says the mend."""


@dataclass(frozen=True, slots=True)
class KnownJob:
    """One job as a source knows it; times are seconds since 1970, None where it does not say."""

    id: str
    source: str  # name of the source that knows it
    name: str = ""
    user: str = ""
    state: str = ""  # as the scheduler writes it: RUNNING, FAILED, Succeeded…
    is_running: bool = False
    started: float | None = None
    ended: float | None = None
    exit_code: str = ""  # as the scheduler writes it: 1:0, 137
    nodes: tuple[str, ...] = ()
    lost_nodes: tuple[str, ...] = ()  # declared lost by the scheduler, under an earlier run too
    gpus: int | None = None  # in all
    paths: tuple[str, ...] = ()  # folders, files or fsspec addresses that hold its logs
    note: str = ""  # what a person should know: why it has no paths
    also: tuple[KnownJob, ...] = ()  # what other sources know of the same job


class JobSource(Protocol):
    """A place where jobs and their logs are known. Loaded by entry point (group `logtriage.sources`)."""

    name: str

    def find(self, asked: str, limit: int) -> list[KnownJob]:
        """Jobs whose id, name, user or path is `asked`, best and newest first. Raises SourceFault."""
        ...

    def ended(self, since: float) -> Iterator[KnownJob]:
        """Jobs that ended, or whose logs last changed, at `since` or later. Raises SourceFault."""
        ...

    def collect(self, job: KnownJob, folder: Path) -> tuple[str, ...]:
        """Paths to triage for it; what must be fetched (pod logs, accounting) is written below `folder`.

        Raises SourceFault.
        """
        ...
