"""May a worker with keyed actors start on this database? Refused before the first job, not after its loss."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy import Connection, Table, select
from sqlalchemy.exc import DBAPIError, OperationalError

from ..logs import first_line
from ..store import Store, metadata
from ..transport.liveness import EXIT_CONFIGURATION, EXIT_CONNECTION

_OLDEST_SQLITE: Final = (3, 35)  # INSERT … RETURNING


class Refused(Exception):
    """The worker must not start; the text says why and what to do.

    Parameters:
        code: the process's exit code.
    """

    def __init__(self, text: str, code: int = EXIT_CONFIGURATION) -> None:
        super().__init__(text)
        self.code = code


def check_store(store: Store, threads: int) -> None:
    """Check what the ledger relies on.

    Parameters:
        store: where the ledger is.
        threads: how many jobs the worker runs at once, each with a connection of its own.

    Raises:
        Refused: something is missing or would break a promise.
    """
    if store.pool_size < threads:
        raise Refused(
            f"expected JOBS_DATABASE_POOL_SIZE to be at least the worker's threads ({threads}), got: "
            f"{store.pool_size}; raise it, or start with --threads {store.pool_size}"
        )
    try:
        with store.engine.connect() as connection:
            if store.is_sqlite:
                _check_sqlite()
            else:
                _check_postgresql(connection)
            _check_tables(connection)
    except OperationalError as error:
        raise Refused(
            f"expected the database {store.url.render_as_string()} to answer, got: "
            f"{' '.join(str(error.orig).split())}; check JOBS_DATABASE_URL, start the server",
            EXIT_CONNECTION,
        ) from error


def _check_postgresql(connection: Connection) -> None:
    query = "SELECT current_setting('transaction_isolation'), current_setting('synchronous_commit')"
    isolation, synchronous = connection.exec_driver_sql(query).one()
    if isolation != "read committed":
        raise Refused(
            f"expected the database's transaction isolation to be READ COMMITTED, got: {isolation.upper()}; "
            "a job that waited for its twin would fail instead of seeing that it is done: reset "
            "default_transaction_isolation of the database, the role or the URL"
        )
    if synchronous == "off":
        raise Refused(
            "expected synchronous_commit to be on, got: off; a crash of the database would undo effects "
            "whose jobs are gone from the queue: reset it for the database, the role or the URL"
        )


def _check_sqlite() -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise Refused(
            f"expected SQLite to be 3.35 or later, got: {sqlite3.sqlite_version}; use a newer Python"
        )


def _check_tables(connection: Connection) -> None:
    for table in metadata.tables.values():
        _check_table(connection, table)


def _check_table(connection: Connection, table: Table) -> None:
    try:
        connection.execute(select(table).limit(0))
    except DBAPIError as error:
        if isinstance(error, OperationalError) and not str(error.orig).startswith("no such"):
            raise  # SQLite reports a missing table, too, as an OperationalError
        raise Refused(
            f"expected the database to have the table {table.name}, got: {first_line(error.orig or error)}; "
            "run `jobsctl migrate`"
        ) from error
