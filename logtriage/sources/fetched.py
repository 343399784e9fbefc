"""What sources fetched of jobs: kept in the data folder for a while, since verdicts cite its lines."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from logtriage.sources.job import JobSource, KnownJob
from logtriage.sources.lookup import Collected, collect

COLLECTED = "collected"  # folder of what sources fetched, such as the logs of pods
COLLECTED_KEPT = 14 * 86_400.0  # seconds


def fetched(job: KnownJob, sources: Sequence[JobSource], data_dir: Path) -> Collected:
    """The logs of a job, of all sources that know it. Raises SourceFault where none has anything."""
    collected = data_dir / COLLECTED
    _prune(collected)
    name = hashlib.sha256(f"{job.source}\n{job.id}".encode()).hexdigest()[:16]
    folder = collected / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.utime(folder)  # what is fetched again is kept anew
    try:
        return collect(job, sources, folder)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # where nothing was fetched


def _prune(collected: Path) -> None:
    oldest = time.time() - COLLECTED_KEPT
    with contextlib.suppress(OSError):
        for folder in collected.iterdir():
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
