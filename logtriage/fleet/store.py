"""What the fleet remembers, in the ledger's database: which jobs were triaged from which logs, and when.

A night that was begun and not ended is gone on with; what it has triaged so far is not read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Column, ColumnElement, Engine, Float, Integer, MetaData, String, Table, Text, select

from logtriage.fleet.jobs import TriagedJob
from logtriage.fleet.supervision import TRIAGED, Outcome
from logtriage.memory.database import open_database, transaction
from logtriage.memory.verdicts import MOST_INDICATIONS
from logtriage.report.document import Verdict, read_verdict, seconds_of
from logtriage.report.visible import visible
from logtriage.sources.job import KnownJob

# What is kept of what a source knows of a job.
_FACTS = (
    *("id", "source", "name", "user", "state", "started", "ended", "exit_code"),
    *("nodes", "lost_nodes", "gpus"),
)

_metadata = MetaData()
_nights = Table(
    "nights",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("scope", String(64), nullable=False, index=True),
    Column("place", Text, nullable=False),
    Column("began", Float, nullable=False),
    Column("ended", Float),
    sqlite_autoincrement=True,
)
_jobs = Table(
    "nightly_jobs",
    _metadata,
    Column("id", String(64), primary_key=True),
    Column("scope", String(64), nullable=False, index=True),
    Column("key", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("night", Integer, nullable=False),
    Column("at", Float, nullable=False),
    Column("known", Text, nullable=False),
    Column("verdict", Text),
)


@dataclass(frozen=True, slots=True)
class Night:
    """One run of the batch; `began` and `before` (when the last one began) are seconds since 1970."""

    id: int
    scope: str
    began: float
    before: float | None
    is_resumed: bool


@dataclass(frozen=True, slots=True)
class Untriaged:
    """A job that has no verdict, and why."""

    key: str
    status: str
    reason: str
    night: int


class FleetStore:
    """The nights of one place (a folder, or the configured sources); every method is one transaction.

    All raise LedgerFault where the database fails.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self.place = place
        self.scope = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()

    def begin(self, now: float) -> Night:
        """The night that was begun and not ended, else a new one."""
        mine = _nights.c.scope == self.scope
        with transaction(self._engine) as connection:
            rows = connection.execute(select(_nights).where(mine).order_by(_nights.c.id)).mappings().all()
            ended = [row["began"] for row in rows if row["ended"] is not None]
            before = ended[-1] if ended else None
            if rows and rows[-1]["ended"] is None:
                return Night(rows[-1]["id"], self.scope, rows[-1]["began"], before, True)
            values = {"scope": self.scope, "place": visible(self.place), "began": now, "ended": None}
            made = connection.execute(_nights.insert().values(values))
            return Night(int(made.inserted_primary_key[0]), self.scope, now, before, False)  # type: ignore[index]

    def end(self, night: Night, now: float) -> None:
        with transaction(self._engine) as connection:
            connection.execute(_nights.update().where(_nights.c.id == night.id).values(ended=now))

    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of the logs of each job that is known, by its key."""
        query = select(_jobs.c.key, _jobs.c.fingerprint).where(_jobs.c.scope == self.scope)
        with transaction(self._engine) as connection:
            return {row.key: row.fingerprint for row in connection.execute(query)}

    def keep(
        self, key: str, job: KnownJob, fingerprint: str, outcome: Outcome, night: Night, now: float
    ) -> None:
        """Write down what became of a job; what was known of it before is replaced."""
        document = outcome.verdict
        if document is not None:
            document = {**document, "indications": document["indications"][:MOST_INDICATIONS]}
        row_id = hashlib.sha256(f"{self.scope}\0{key}".encode()).hexdigest()
        values = {
            "id": row_id,
            "scope": self.scope,
            "key": key,
            "fingerprint": fingerprint,
            "status": outcome.status,
            "reason": visible(outcome.reason, 2_000),  # a NUL is no text for a database
            "night": night.id,
            "at": now,
            "known": json.dumps({name: getattr(job, name) for name in _FACTS}),
            "verdict": None if document is None else json.dumps(document),
        }
        with transaction(self._engine) as connection:
            connection.execute(_jobs.delete().where(_jobs.c.id == row_id))
            connection.execute(_jobs.insert().values(values))

    def triaged(self, since: float) -> Iterator[TriagedJob]:
        """The jobs whose verdict was given at `since` or later, by key.

        Verdicts of a version that cannot be read any more are left out.
        """
        for row in self._rows(_jobs.c.at >= since, _jobs.c.status == TRIAGED):
            with suppress(ValueError):
                verdict = read_verdict(json.loads(row["verdict"]))
                yield _triaged(row["key"], json.loads(row["known"]), verdict, row["night"])

    def untriaged(self, since: float) -> list[Untriaged]:
        """The jobs that could not be triaged at `since` or later, by key."""
        rows = self._rows(_jobs.c.at >= since, _jobs.c.status != TRIAGED)
        return [Untriaged(row["key"], row["status"], row["reason"], row["night"]) for row in rows]

    def _rows(self, *which: ColumnElement[bool]) -> Sequence[Any]:
        query = select(_jobs).where(_jobs.c.scope == self.scope, *which).order_by(_jobs.c.key)
        with transaction(self._engine) as connection:
            return connection.execute(query).mappings().all()


def open_store(database_url: str, data_dir: Path, place: str) -> FleetStore:
    """The store of the nights of one place. Raises LedgerFault where it cannot be opened."""
    return FleetStore(open_database(database_url, data_dir, _metadata), place)


def _triaged(key: str, known: Mapping[str, Any], verdict: Verdict, night: int) -> TriagedJob:
    job = verdict.job
    # A folder knows when its files last changed: there the logs say better when the job ran.
    is_accounted = known["started"] is not None
    return TriagedJob(
        key=key,
        verdict=verdict,
        night=night,
        name=known["name"] or job.name,
        user=known["user"],
        started=known["started"] if is_accounted else seconds_of(job.started),
        ended=known["ended"] if is_accounted else seconds_of(job.ended),
        gpus=known["gpus"],
        nodes=tuple(known["nodes"]) or job.hosts,
        lost_nodes=tuple(known.get("lost_nodes", ())),  # not kept by the first versions
    )
