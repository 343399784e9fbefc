"""How well a job answers a question, and which jobs a misspelt question may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from logtriage.sources.job import KnownJob

MOST_NEAR = 5
_LEAST_ALIKE = 0.7  # of difflib's ratio: one wrong character in four, two swapped ones in six
_LONGEST = 128  # characters of a name that are compared


def fit(job: KnownJob, asked: str) -> int | None:
    """0 where `asked` is the job's id, then: the array it is of, its name, its user; None for another's."""
    wanted = asked.casefold()
    if wanted == job.id.casefold():
        return 0
    if job.id.casefold().startswith((f"{wanted}_", f"{wanted}+")) and wanted.isdecimal():
        return 1
    if wanted == job.name.casefold():
        return 2
    return 3 if wanted == job.user.casefold() else None


def order(job: KnownJob, asked: str) -> tuple[int, float, str]:
    """The key that puts the best answer first: the fit, then the newest."""
    known = fit(job, asked)
    moment = float("inf") if job.is_running else job.ended or job.started or 0.0
    return 9 if known is None else known, -moment, job.id


def near(asked: str, jobs: Iterable[KnownJob]) -> tuple[str, ...]:
    """Ids, names and users that look like `asked`, the most alike first."""
    words = {word.casefold(): word for job in jobs for word in (job.id, job.name, job.user) if word}
    pool = [word for word in words if len(word) <= _LONGEST]
    close = difflib.get_close_matches(asked.casefold()[:_LONGEST], pool, MOST_NEAR, _LEAST_ALIKE)
    return tuple(words[word] for word in close)
