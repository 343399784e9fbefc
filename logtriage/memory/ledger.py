"""Confirmed diagnoses and what was done to the learned rules: who, when, on which verdict. The facts.

SQLite in the data folder, or any database that SQLAlchemy speaks to. What is written here is written for good
(a full sync of the disk) before anything else is told or changed; the index of likeness and the rule files
can be made again from it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    select,
)

from logtriage.memory.database import LedgerFault, open_database, transaction

__all__ = ["Change", "Cited", "Diagnosis", "Ledger", "LedgerFault", "Vote", "now", "open_ledger"]


@dataclass(frozen=True, slots=True)
class Cited:
    """A line that a person called the evidence of a diagnosis (or agreed to)."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a person says of a job. `told` is the type that the verdict had named."""

    verdict_id: str
    failure_type: str
    told: str
    author: str
    at: str  # ISO 8601 in UTC
    title: str
    evidence: tuple[Cited, ...]
    context: dict[str, Any]  # job, frameworks, ranks, hosts, symptoms
    mitigation: str = ""
    id: int = 0  # given by the ledger


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to one learned rule: the file before and after (None: there was none)."""

    rule: str
    action: str  # learned | generalised | promoted | retired | undone
    author: str
    at: str
    reason: str
    bank: str  # whose rule folder it is
    before: tuple[str, bytes] | None  # (path below the rule folder, content)
    after: tuple[str, bytes] | None
    diagnosis: int | None = None
    is_applied: bool = False
    is_undone: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True)
class Vote:
    """Whether a confirmed diagnosis agrees with a learned rule that matched its job."""

    rule: str
    verdict_id: str
    agrees: bool


_metadata = MetaData()
_diagnoses = Table(
    "diagnoses",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("verdict_id", String(64), nullable=False),
    Column("failure_type", String(64), nullable=False),
    Column("told", String(64), nullable=False),
    Column("author", String(200), nullable=False),
    Column("at", String(32), nullable=False),
    Column("title", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("mitigation", Text, nullable=False),
    UniqueConstraint("verdict_id", "author"),
    sqlite_autoincrement=True,  # an id that was forgotten is never given again
)
_changes = Table(
    "rule_changes",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("rule", String(200), nullable=False),
    Column("action", String(20), nullable=False),
    Column("author", String(200), nullable=False),
    Column("at", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("bank", Text, nullable=False),
    Column("before_path", Text),
    Column("before_content", Text),
    Column("after_path", Text),
    Column("after_content", Text),
    Column("diagnosis", Integer),
    Column("is_applied", Boolean, nullable=False),
    Column("is_undone", Boolean, nullable=False),
    sqlite_autoincrement=True,
)
_votes = Table(
    "rule_votes",
    _metadata,
    Column("rule", String(200), primary_key=True),
    Column("verdict_id", String(64), primary_key=True),
    Column("agrees", Boolean, nullable=False),
)


class Ledger:
    """One open ledger; every method is a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _transaction(self) -> AbstractContextManager[Connection]:
        return transaction(self._engine)

    def add(self, diagnosis: Diagnosis) -> Diagnosis:
        """Write down a diagnosis; an author's later word on the same verdict replaces the first."""
        values = {
            "verdict_id": diagnosis.verdict_id,
            "failure_type": diagnosis.failure_type,
            "told": diagnosis.told,
            "author": _storable(diagnosis.author)[:200],
            "at": diagnosis.at,
            "title": _storable(diagnosis.title),
            "evidence": json.dumps([[each.file, each.line, each.text] for each in diagnosis.evidence]),
            "context": json.dumps(diagnosis.context),
            "mitigation": _storable(diagnosis.mitigation),
        }
        with self._transaction() as connection:
            connection.execute(
                _diagnoses.delete().where(
                    _diagnoses.c.verdict_id == values["verdict_id"], _diagnoses.c.author == values["author"]
                )
            )
            made = connection.execute(_diagnoses.insert().values(values))
            return replace(diagnosis, id=int(made.inserted_primary_key[0]))  # type: ignore[index]

    def diagnoses(self, failure_type: str = "", verdict_id: str = "") -> list[Diagnosis]:
        """Newest first; of one type, or on one verdict, where it is named."""
        query = select(_diagnoses).order_by(_diagnoses.c.id.desc())
        if failure_type:
            query = query.where(_diagnoses.c.failure_type == failure_type)
        if verdict_id:
            query = query.where(_diagnoses.c.verdict_id == verdict_id)
        with self._transaction() as connection:
            return [_diagnosis(row._mapping) for row in connection.execute(query)]

    def forget(self, diagnosis_id: int) -> bool:
        """Remove a diagnosis; False where there is none with this id."""
        with self._transaction() as connection:
            gone = connection.execute(_diagnoses.delete().where(_diagnoses.c.id == diagnosis_id))
            return gone.rowcount > 0

    def vote(self, votes: Sequence[Vote]) -> None:
        """Write down what confirmed jobs say of learned rules; of one job the last word counts."""
        with self._transaction() as connection:
            for each in votes:
                connection.execute(
                    _votes.delete().where(_votes.c.rule == each.rule, _votes.c.verdict_id == each.verdict_id)
                )
                connection.execute(
                    _votes.insert().values(rule=each.rule, verdict_id=each.verdict_id, agrees=each.agrees)
                )

    def votes(self, rule: str) -> tuple[int, int]:
        """(jobs that agree with a learned rule, jobs that contradict it)."""
        with self._transaction() as connection:
            told = [
                bool(row[0])
                for row in connection.execute(select(_votes.c.agrees).where(_votes.c.rule == rule))
            ]
        return sum(told), len(told) - sum(told)

    def plan(self, changes: Sequence[Change], undoes: int | None = None) -> list[Change]:
        """Write down changes of rule files before they are made, all or none.

        `undoes` is the change that they take back.
        """
        planned = []
        with self._transaction() as connection:
            for each in changes:
                made = connection.execute(_changes.insert().values(_change_values(each)))
                planned.append(replace(each, id=int(made.inserted_primary_key[0])))  # type: ignore[index]
            if undoes is not None:
                connection.execute(_changes.update().where(_changes.c.id == undoes).values(is_undone=True))
        return planned

    def changes(self, bank: str) -> list[Change]:
        """All changes of one rule folder, oldest first."""
        query = select(_changes).where(_changes.c.bank == bank).order_by(_changes.c.id)
        with self._transaction() as connection:
            return [_change(row._mapping) for row in connection.execute(query)]

    def mark_applied(self, change_id: int) -> None:
        with self._transaction() as connection:
            connection.execute(_changes.update().where(_changes.c.id == change_id).values(is_applied=True))


def open_ledger(database_url: str, data_dir: Path) -> Ledger:
    """The ledger at a SQLAlchemy URL; without one, `ledger.sqlite3` in the data folder.

    Raises LedgerFault where it cannot be opened.
    """
    return Ledger(open_database(database_url, data_dir, _metadata))


def _diagnosis(row: Any) -> Diagnosis:
    values = dict(row)
    values["evidence"] = tuple(Cited(*each) for each in json.loads(values["evidence"]))
    values["context"] = json.loads(values["context"])
    return Diagnosis(**values)


def _change_values(change: Change) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: getattr(change, name)
        for name in (
            "rule",
            "action",
            "author",
            "at",
            "reason",
            "bank",
            "diagnosis",
            "is_applied",
            "is_undone",
        )
    }
    for name, image in (("before", change.before), ("after", change.after)):
        values[f"{name}_path"] = image[0] if image else None
        values[f"{name}_content"] = base64.b64encode(image[1]).decode() if image else None
    return values


def _change(row: Any) -> Change:
    values = dict(row)
    for name in ("before", "after"):
        path, content = values.pop(f"{name}_path"), values.pop(f"{name}_content")
        values[name] = (path, base64.b64decode(content)) if path is not None else None
    return Change(**values)


def _storable(text: str) -> str:
    """What every database takes: PostgreSQL refuses NUL, and no UTF-8 holds half a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def now() -> str:
    """The present second, ISO 8601 in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
