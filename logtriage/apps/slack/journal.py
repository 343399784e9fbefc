"""What the bot has taken on and what it said where: written before anything is acknowledged.

SQLite in the data folder, synced with every write. A delivery that Slack sends twice has the same id and is
taken once; what was taken and not done when the bot ended is done at its next start.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

FILE = "slack.sqlite3"
DONE_KEPT = 3 * 86_400.0  # seconds; Slack delivers again within hours
THREADS_KEPT = 365 * 86_400.0  # as long as verdicts
_TABLES = """
CREATE TABLE IF NOT EXISTS deliveries (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, payload TEXT NOT NULL, at REAL NOT NULL,
    posted TEXT NOT NULL DEFAULT '', done INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS threads (
    channel TEXT NOT NULL, thread TEXT NOT NULL, verdict TEXT NOT NULL, job TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (channel, thread));
"""


class JournalFault(Exception):
    """The journal cannot be opened, or another bot has it; the message says which."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something that Slack delivered and that is to be done once; `posted` is the message that answers it."""

    id: str
    kind: str  # question | word | report
    payload: dict[str, Any]
    at: float = 0.0
    posted: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a thread is about: the verdict that was given there, and the job's id as its source has it."""

    verdict: str
    job: str


class Journal:
    """One open journal. Its writes are short, and are made in the thread of whoever asks."""

    def __init__(self, connection: sqlite3.Connection, held: IO[str]) -> None:
        self._connection = connection
        self._held = held
        self._lock = threading.Lock()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._connection:
            yield self._connection

    def accept(self, delivery: Delivery) -> bool:
        """Write a delivery down for good; False where it was taken on before."""
        payload = json.dumps(delivery.payload)
        with self._transaction() as connection:
            connection.execute("DELETE FROM deliveries WHERE done = 1 AND at < ?", (time.time() - DONE_KEPT,))
            made = connection.execute(
                "INSERT OR IGNORE INTO deliveries (id, kind, payload, at) VALUES (?, ?, ?, ?)",
                (delivery.id, delivery.kind, payload, time.time()),
            )
            return made.rowcount == 1

    def note_posted(self, delivery_id: str, message: str) -> None:
        """Which message answers a delivery: after a restart it is edited, and none is posted anew."""
        with self._transaction() as connection:
            connection.execute("UPDATE deliveries SET posted = ? WHERE id = ?", (message, delivery_id))

    def finish(self, delivery_id: str) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE deliveries SET done = 1 WHERE id = ?", (delivery_id,))

    def unfinished(self) -> list[Delivery]:
        """What was taken on and not done, oldest first."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT id, kind, payload, at, posted FROM deliveries WHERE done = 0 ORDER BY at, id"
            ).fetchall()
        return [Delivery(row[0], row[1], json.loads(row[2]), row[3], row[4]) for row in rows]

    def remember(self, channel: str, thread: str, topic: Topic) -> None:
        """What a thread is about from now on; the thread `""` is a direct conversation."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM threads WHERE at < ?", (time.time() - THREADS_KEPT,))
            connection.execute(
                "INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)",
                (channel, thread, topic.verdict, topic.job, time.time()),
            )

    def topic(self, channel: str, thread: str) -> Topic | None:
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT verdict, job FROM threads WHERE channel = ? AND thread = ?", (channel, thread)
            ).fetchone()
        return Topic(*row) if row else None

    def gave(self, verdict: str) -> bool:
        """Whether this bot gave that verdict: others of this machine are not its to show."""
        with self._transaction() as connection:
            found = connection.execute("SELECT 1 FROM threads WHERE verdict = ? LIMIT 1", (verdict,))
            return found.fetchone() is not None

    def close(self) -> None:
        self._connection.close()
        self._held.close()


def open_journal(data_dir: Path) -> Journal:
    """The journal of this data folder, for this process alone. Raises JournalFault."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = (data_dir / "slack.lock").open("w")
    except OSError as fault:
        raise JournalFault(f"{data_dir}: {fault.strerror}") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        # Two would answer each question twice.
        raise JournalFault(f"another bot runs on {data_dir}: end it, or set another data_dir") from None
    try:
        (data_dir / FILE).touch(mode=0o600)
        connection = sqlite3.connect(data_dir / FILE, timeout=30, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.executescript(_TABLES)
    except (sqlite3.Error, OSError) as fault:
        held.close()
        raise JournalFault(f"{data_dir / FILE}: {fault}") from None
    return Journal(connection, held)
