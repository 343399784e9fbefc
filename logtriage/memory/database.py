"""The SQL database that holds the facts: opened here, once, for everything that keeps tables in it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Engine, MetaData, create_engine, event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from logtriage.memory.privacy import close_to_others

WAIT_SECONDS = 30  # for another process that writes
CONNECT_SECONDS = 10  # for a server that may be down
_TURN = 0x6C6F6774  # PostgreSQL's advisory lock that the program's transactions take in turn


class LedgerFault(Exception):
    """The database cannot be opened or written; the message says which and why."""


def place(engine: Engine) -> str:
    """Where it is, without a password."""
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that ends with the block. Raises LedgerFault."""
    try:
        with engine.begin() as connection:
            yield connection
    except (SQLAlchemyError, sqlite3.Error) as fault:  # the latter of what is said to a new connection
        raise LedgerFault(f"{place(engine)}: {getattr(fault, 'orig', None) or fault}") from None


def open_database(database_url: str, data_dir: Path, tables: MetaData) -> Engine:
    """The database at a SQLAlchemy URL, with these tables; without one, `ledger.sqlite3` in the data folder.

    Raises LedgerFault where it cannot be opened.
    """
    if not database_url:
        try:
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            (data_dir / "ledger.sqlite3").touch(mode=0o600)
            close_to_others(data_dir)
        except OSError as fault:
            raise LedgerFault(f"{data_dir}: {fault.strerror}") from None
    try:
        engine = create_engine(database_url or f"sqlite:///{data_dir / 'ledger.sqlite3'}")
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as fault:
        raise LedgerFault(f"database_url cannot be used: {fault}") from None
    event.listen(engine, "do_connect", _limit_waiting)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _make_durable)
        event.listen(engine, "begin", _begin_writing)
    elif engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _take_turns)
    try:
        with transaction(engine) as connection:
            tables.create_all(connection)
    except ValueError as fault:  # of an option behind the `?`, which the driver reads
        raise LedgerFault(f"database_url cannot be used: {fault}") from None
    return engine


def _limit_waiting(dialect: Dialect, record: object, arguments: object, options: dict[str, Any]) -> None:
    if dialect.name == "sqlite":
        options.setdefault("timeout", WAIT_SECONDS)
    elif dialect.driver in ("psycopg", "psycopg2"):
        options.setdefault("connect_timeout", CONNECT_SECONDS)


def _make_durable(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver's guess
    given_up = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as fault:
            # SQLite does not wait for its lock here: a new database that two open at once is refused to one.
            # A full disk or one that cannot be written is another thing, and no waiting mends it.
            is_taken = fault.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not is_taken or time.monotonic() > given_up:
                raise
            time.sleep(0.05)
    connection.execute("PRAGMA synchronous=FULL")


def _begin_writing(connection: Connection) -> None:
    # A transaction that reads first and writes later could find another writer in between and fail at once.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _take_turns(connection: Connection) -> None:
    # As SQLite's writers do: two that replace the same row, or make the tables, would else get in each
    # other's way. Transactions are short; a lock goes with the one that holds it, however that ends.
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TURN})")
