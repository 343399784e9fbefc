"""What a pattern matched, as jobs: the files and folders of one job together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from logtriage.sources.job import KnownJob
from logtriage.sources.patterns import Match


def jobs_of(matches: Iterable[Match], source: str) -> list[KnownJob]:
    """One job for all matches that agree in id, name and user; it ended when the newest of them changed."""
    jobs: dict[tuple[str, str, str], KnownJob] = {}
    for match in matches:
        key = (match.job_id, match.name, match.user)
        path, changed = match.entry.path, match.entry.changed
        known = jobs.get(key)
        if known is None:
            jobs[key] = KnownJob(
                match.job_id, source, name=match.name, user=match.user, ended=changed, paths=(path,)
            )
        elif path not in known.paths:
            newest = max(filter(None, (known.ended, changed)), default=None)
            jobs[key] = replace(known, paths=(*known.paths, path), ended=newest)
    return list(jobs.values())
