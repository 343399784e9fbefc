"""The SQL database that holds the facts: opened here, once, for everything that keeps tables in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, MetaData, create_engine, event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

WAIT_SECONDS = 30  # for another process that writes


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
    except SQLAlchemyError as fault:
        raise LedgerFault(f"{place(engine)}: {getattr(fault, 'orig', None) or fault}") from None


def open_database(database_url: str, data_dir: Path, tables: MetaData) -> Engine:
    """The database at a SQLAlchemy URL, with these tables; without one, `ledger.sqlite3` in the data folder.

    Raises LedgerFault where it cannot be opened.
    """
    if not database_url:
        try:
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            (data_dir / "ledger.sqlite3").touch(mode=0o600)
        except OSError as fault:
            raise LedgerFault(f"{data_dir}: {fault.strerror}") from None
    url = database_url or f"sqlite:///{data_dir / 'ledger.sqlite3'}"
    try:
        engine = create_engine(
            url, connect_args={"timeout": WAIT_SECONDS} if url.startswith("sqlite") else {}
        )
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as fault:
        raise LedgerFault(f"database_url cannot be used: {fault}") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _make_durable)
        event.listen(engine, "begin", _begin_writing)
    with transaction(engine) as connection:
        tables.create_all(connection)
    return engine


def _make_durable(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver's guess
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_writing(connection: Connection) -> None:
    # A transaction that reads first and writes later could find another writer in between and fail at once.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
