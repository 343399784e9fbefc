"""The kept verdicts at a glance: the few facts that lists, exports and figures show of each.

Read from the files as they lie, without checking every document against its schema: thousands of them are
listed in the time in which a person waits.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logtriage.memory.verdicts import NO_VERDICT, kept_entry, kept_files
from logtriage.report.document import Verdict, read_verdict


@dataclass(frozen=True, slots=True)
class Glance:
    """One kept verdict. `at` is when it was given (seconds since 1970); the last three are what it cost."""

    id: str
    at: float
    user: str  # whose job it was: as its source said, else the owner of the logs
    job: str
    failure_type: str
    failure_class: str
    confidence: float
    title: str
    outcome: str
    decided_by: str
    hosts: tuple[str, ...]
    culprit_hosts: tuple[str, ...]
    culprit_ranks: tuple[int, ...]
    paths: tuple[str, ...]
    seconds: float
    bytes: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which verdicts are meant; what is empty wants all. `failure_type` may be a family, `gpu` or `gpu.`."""

    since: float | None = None
    until: float | None = None
    host: str = ""
    failure_type: str = ""
    user: str = ""

    def takes(self, each: Glance) -> bool:
        return (
            (self.since is None or each.at >= self.since)
            and (self.until is None or each.at < self.until)
            and (
                not self.host
                or any(_same_host(self.host, host) for host in (*each.hosts, *each.culprit_hosts))
            )
            and (not self.failure_type or _of_type(each.failure_type, self.failure_type))
            and (not self.user or each.user == self.user)
        )


def glances(data_dir: Path, wanted: Wanted | None = None) -> Iterator[Glance]:
    """The kept verdicts that are wanted, the newest first; files that cannot be read are passed over."""
    return (glance for glance, _ in _wanted(data_dir, wanted or Wanted()))


def wanted_verdicts(data_dir: Path, wanted: Wanted) -> Iterator[tuple[Glance, Verdict]]:
    """The kept verdicts that are wanted with all that they say, the newest first."""
    for glance, document in _wanted(data_dir, wanted):
        with contextlib.suppress(*NO_VERDICT):
            yield glance, read_verdict(document)


def _wanted(data_dir: Path, wanted: Wanted) -> Iterator[tuple[Glance, dict[str, Any]]]:
    for path in kept_files(data_dir, wanted.since):
        try:
            entry = kept_entry(path)
            glance = _glance(entry)
        except NO_VERDICT:
            continue
        if wanted.takes(glance):
            yield glance, entry["verdict"]


def _glance(entry: dict[str, Any]) -> Glance:
    document = entry["verdict"]
    job, body = document["job"], document["verdict"]
    culprits = body["culprits"]
    spent = (document.get("model") or {}).get("spent") or {}
    return Glance(
        id=_text(document["id"]),
        at=_measure(entry["at"]),
        user=_text(entry.get("user", "")),
        job=_text(job["name"]),
        failure_type=_text(body["failure_type"]),
        failure_class=_text(body["class"]),
        confidence=_measure(body["confidence"]),
        title=_text(body["title"]),
        outcome=_text(job["outcome"]),
        decided_by=_text(body["decided_by"]),
        hosts=_texts(job["hosts"]),
        culprit_hosts=_texts(culprits["hosts"]),
        culprit_ranks=tuple(_count(rank) for rank in culprits["ranks"]),
        paths=_texts(entry["paths"]),
        seconds=_measure(document["timing"]["seconds"]),
        bytes=_count(document["mining"]["bytes"]),
        tokens=_count(spent.get("tokens", 0)),
    )


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _text(value: Any) -> str:
    """Text that every file takes: names of files may hold bytes that are none."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _measure(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError("no number")
    return float(value)


def _count(value: Any) -> int:
    if not 0 <= value < 1 << 63:  # tables hold no greater ones
        raise ValueError("no count")
    return int(value)


def _of_type(failure_type: str, asked: str) -> bool:
    return failure_type == asked or failure_type.startswith(asked.rstrip(".") + ".")


def _same_host(asked: str, host: str) -> bool:
    """A short name is the machine's full one as well."""
    asked, host = asked.casefold(), host.casefold()
    return asked == host or host.startswith(asked + ".") or asked.startswith(host + ".")
