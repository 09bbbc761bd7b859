"""How does the ledger speak to PostgreSQL? Two messages a job, one of which replaces the COMMIT.

Each holds several statements: BEGIN travels with the INSERT, and the check with the COMMIT, so that the
ledger costs no round trip of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NoReturn

import psycopg
from psycopg import pq
from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import AdaptedConnection
from sqlalchemy.exc import DBAPIError

from ..store.postgresql import simple_query
from .databases import CommitUnknown, KeyBusy, Stale, TransactionAborted, TransactionEnded
from .entry import Entry, Limits

_LOCK_NOT_AVAILABLE: Final = "55P03"
_IN_FAILED_TRANSACTION: Final = "25P02"
_LONGEST_MS: Final = 2**31 - 1

# DEFAULT, so that the actor's own statements wait for locks as the database is configured to.
_INSERT: Final = (
    b"SET LOCAL lock_timeout = %d; "
    b"INSERT INTO job_ledger (key, args_hash, actor, message_id) VALUES (%b, '\\x%b', %b, %b) "
    b"ON CONFLICT DO NOTHING RETURNING txid_current(); "
    b"SET LOCAL lock_timeout TO DEFAULT"
)
_OPEN: Final = b"BEGIN; SET LOCAL idle_in_transaction_session_timeout = %d; " + _INSERT
_HELD: Final = b"SELECT encode(args_hash, 'hex') FROM job_ledger WHERE key = %b"

# A transaction that has written nothing has no id: the comparison is NULL then, which is not true either.
_ENDED: Final = "jobs: not the transaction of the ledger row"
_COMMIT: Final = (
    b"SELECT (CASE WHEN txid_current_if_assigned() = %d THEN '1' ELSE '"
    + _ENDED.encode()
    + b"' END)::int; COMMIT"
)


class PostgreSQL:
    """The ledger's statements for PostgreSQL 13 and later; see `Database`."""

    def open(self, connection: Connection, entry: Entry, limits: Limits) -> bytes | None:
        """Begin and insert in one message."""
        query = _OPEN % (min(limits.idle_ms, _LONGEST_MS), limits.wait_ms, *_row(_driver(connection), entry))
        try:
            transaction = _inserted(_run(connection, query, "INSERT INTO job_ledger"))
        except DBAPIError as error:
            if error.connection_invalidated:
                raise Stale(error) from error
            raise _busy(error) from error
        return None if transaction is None else _COMMIT % transaction

    def join(self, connection: Connection, entry: Entry, limits: Limits) -> bool:
        """Insert within the open transaction."""
        query = _INSERT % (limits.wait_ms, *_row(_driver(connection), entry))
        try:
            return _inserted(_run(connection, query, "INSERT INTO job_ledger")) is not None
        except DBAPIError as error:
            raise _busy(error) from error

    def held_hash(self, connection: Connection, key: str) -> bytes | None:
        """Look up in a statement of its own: only a new snapshot sees what the INSERT has waited for."""
        query = _HELD % _literal(_driver(connection), key)
        result = _run(connection, query, "SELECT args_hash FROM job_ledger")[-1]
        value = result.get_value(0, 0) if result.ntuples else None
        return None if value is None else bytes.fromhex(value.decode())

    def mark_failed(self, connection: Connection) -> None:
        """Do nothing: the server keeps count of errors and savepoints."""

    def is_aborted(self, connection: Connection) -> bool:
        """Ask libpq, which the server tells with every answer: an error of the client's aborts nothing."""
        status: int = _driver(connection).pgconn.transaction_status
        return status == pq.TransactionStatus.INERROR

    def explain(self, error: DBAPIError) -> Exception:
        """Read the SQLSTATE and the text of the check in the commit message."""
        if error.connection_invalidated:
            return CommitUnknown(error)
        if getattr(error.orig, "sqlstate", None) == _IN_FAILED_TRANSACTION:
            return TransactionAborted()
        return TransactionEnded() if _ENDED in str(error.orig) else error


def _driver(connection: Connection) -> Any:
    """Return psycopg's connection, of either kind."""
    return connection.connection.driver_connection


def _literal(driver: Any, value: str) -> bytes:
    """Quote as libpq does for this connection's settings."""
    encoded = value.encode() if value.isascii() else value.encode(driver.info.encoding)
    return pq.Escaping(driver.pgconn).escape_literal(encoded)


def _row(driver: Any, entry: Entry) -> tuple[bytes, bytes, bytes, bytes]:
    key, actor, message_id = (_literal(driver, text) for text in (entry.key, entry.actor, entry.message_id))
    return key, entry.args_hash.hex().encode(), actor, message_id


def _inserted(results: list[Any]) -> int | None:
    """Return the transaction's id, which the INSERT returned unless its key is spent."""
    returned = results[-2]
    return int(returned.get_value(0, 0)) if returned.ntuples else None


def _run(connection: Connection, query: bytes, label: str) -> list[Any]:
    """Run a message on psycopg's connection, in a thread or in SQLAlchemy's greenlet.

    Raises:
        sqlalchemy.exc.DBAPIError: as SQLAlchemy would raise it; a lost connection is invalidated.
    """
    adapted: Any = connection.connection.dbapi_connection
    send = partial(_send, query=query)
    try:
        results: list[Any] = (
            adapted.run_async(send) if isinstance(adapted, AdaptedConnection) else send(adapted)
        )
    except psycopg.Error as error:
        _raise(connection, error, label)
    except BaseException:
        connection.invalidate()  # interrupted: its state is not known
        raise
    return results


def _send(driver: Any, query: bytes) -> Any:
    return driver.wait(simple_query(driver, query))


def _raise(connection: Connection, error: psycopg.Error, label: str) -> NoReturn:
    lost = _driver(connection).pgconn.status != pq.ConnStatus.OK
    if lost:
        connection.invalidate(error)
    raise DBAPIError.instance(
        label, None, error, psycopg.Error, connection_invalidated=lost, dialect=connection.dialect
    ) from error


def _busy(error: DBAPIError) -> Exception:
    return KeyBusy() if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE else error
