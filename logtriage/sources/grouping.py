"""What patterns match, as jobs: the files and folders of one job together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from logtriage.sources.job import KnownJob, SourceFault
from logtriage.sources.patterns import Entry, Match, TooMany, matches, read_pattern


def jobs_below(
    patterns: Sequence[str], source: str, listed: Callable[[str], Iterable[Entry]]
) -> list[KnownJob]:
    """The jobs of all patterns; `listed` gives the entries of one folder. Raises SourceFault for too many."""
    found: list[Match] = []
    for pattern in map(read_pattern, patterns):
        try:
            found += matches(pattern, listed)
        except TooMany:
            raise SourceFault(f"{pattern.root} holds too many entries: say more in the pattern") from None
    return _jobs_of(found, source)


def roots_of(patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(read_pattern(text).root for text in patterns))


def _jobs_of(matched: Iterable[Match], source: str) -> list[KnownJob]:
    """One job for all matches that agree in id, name and user; it ended when the newest of them changed."""
    jobs: dict[tuple[str, str, str], KnownJob] = {}
    for match in matched:
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
