"""A job that is named by its id instead of by the place of its logs: `logtriage triage 4812`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logtriage.apps.console import complain

if TYPE_CHECKING:
    from logtriage.settings import Settings
    from logtriage.sources.job import KnownJob

MOST_NAMED = 5


def paths_of(asked: Sequence[str], settings: Settings) -> list[str]:
    """The paths as they were given; or those of the one job, known to a configured source, that is named.

    Only a single word that is no path here is looked up. Raises NothingReadable where no job is meant by it,
    or several are.
    """
    if len(asked) != 1 or not settings.sources or not _is_word(asked[0]):
        return list(asked)
    from logtriage.intake.folder import NothingReadable
    from logtriage.sources.fetched import fetched
    from logtriage.sources.job import SourceFault
    from logtriage.sources.lookup import configured_sources, find_jobs

    word = asked[0]
    sources = configured_sources(settings)
    found = find_jobs(word, sources)
    for said in found.unasked:
        complain(f"warning: {said}")
    jobs = [job for job in found.jobs if job.id == word] or found.jobs
    if not jobs:
        near = f"; was one of these meant: {', '.join(found.near[:MOST_NAMED])}?" if found.near else ""
        why = found.refused or f"no such file or folder, and no job of a configured source{near}"
        raise NothingReadable(f"nothing readable at {word}: {why}")
    if len(jobs) > 1:
        more = f", and {len(jobs) - MOST_NAMED} more" if len(jobs) > MOST_NAMED else ""
        named = ", ".join(map(_told, jobs[:MOST_NAMED]))
        raise NothingReadable(f"{word} is not one job: {named}{more}; name one by its id, or its path")
    if jobs[0].is_running:
        complain(f"warning: job {jobs[0].id} is still running")
    try:
        collected = fetched(jobs[0], sources, settings.data_dir)
    except SourceFault as fault:
        raise NothingReadable(f"job {word} has no logs to read: {fault}") from None
    for said in collected.missed:
        complain(f"warning: {said}")
    return list(collected.paths)


def _is_word(asked: str) -> bool:
    # os.path, since Path raises for a word longer than any name.
    return asked != "-" and not set("/\\*?[") & set(asked) and not os.path.exists(asked)  # noqa: PTH110


def _told(job: KnownJob) -> str:
    facts = " ".join(filter(None, (job.name, job.user and f"of {job.user}", job.state)))
    return f"{job.id} ({facts})" if facts else job.id
