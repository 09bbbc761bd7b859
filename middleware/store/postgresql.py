"""How does the kit speak to PostgreSQL below SQLAlchemy? Guarded connections, and queries in one message."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import generators, pq
from psycopg.errors import error_from_result

from .guard import Guard, Record, new_guard

Waiting: TypeAlias = Generator[Any, Any, list[Any]]
"""What psycopg's `Connection.wait` takes, in a thread or awaited."""

_GOOD: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


def simple_query(connection: Any, query: bytes) -> Waiting:
    """Send statements in one message and wait for all of their results.

    psycopg's `execute` would send a BEGIN of its own first, which is a round trip. When a statement fails,
    the server skips the rest.

    Parameters:
        connection: psycopg's, of either kind.
        query: the statements, values included.

    Raises:
        psycopg.OperationalError: the connection was lost.
        psycopg.Error: a statement failed.
    """
    connection.pgconn.send_query(query)
    results: list[Any] = yield from generators.execute(connection.pgconn)
    if results[-1].status in _GOOD:
        return results
    error = error_from_result(results[-1], encoding=connection.info.encoding)
    if connection.pgconn.status == pq.ConnStatus.OK or isinstance(error, psycopg.OperationalError):
        raise error
    raise psycopg.OperationalError(*error.args) from error  # whatever the server said when it hung up


class GuardedCursor(psycopg.Cursor[Any]):
    """A cursor whose statements are looked at first."""

    def execute(self, query: Any, *args: Any, **options: Any) -> Any:
        """Execute a statement, unless it would end a transaction that has an owner."""
        self.connection.guard.before_statement(query)  # type: ignore[attr-defined]  # of a GuardedConnection
        return super().execute(query, *args, **options)


class GuardedAsyncCursor(psycopg.AsyncCursor[Any]):
    """The same for coroutines."""

    async def execute(self, query: Any, *args: Any, **options: Any) -> Any:
        """Execute a statement, unless it would end a transaction that has an owner."""
        self.connection.guard.before_statement(query)  # type: ignore[attr-defined]  # of a GuardedAsyncConnection
        return await super().execute(query, *args, **options)


class GuardedConnection(psycopg.Connection[Any]):
    """psycopg's connection; in place of COMMIT it sends its owner's message, which checks first."""

    guard = Guard()

    def commit(self) -> None:
        """Commit, if the guard allows it."""
        owner = self.guard.before_commit()
        if owner is None:
            super().commit()
        else:
            self.wait(simple_query(self, owner.commit_message))


class GuardedAsyncConnection(psycopg.AsyncConnection[Any]):
    """The same for coroutines."""

    guard = Guard()

    async def commit(self) -> None:
        """Commit, if the guard allows it."""
        owner = self.guard.before_commit()
        if owner is None:
            await super().commit()
        else:
            await self.wait(simple_query(self, owner.commit_message))


def connect(_dialect: object, record: Record, args: list[Any], options: dict[str, Any]) -> GuardedConnection:
    """Open a guarded connection; SQLAlchemy's `do_connect`."""
    guard = new_guard(record)
    connection = GuardedConnection.connect(*args, cursor_factory=GuardedCursor, **options)
    connection.guard = guard
    return connection


def connect_async(_dialect: object, record: Record, _args: list[Any], options: dict[str, Any]) -> None:
    """Let SQLAlchemy open a guarded connection for coroutines; the other `do_connect`."""
    guard = new_guard(record)

    async def create(*args: Any, **more: Any) -> GuardedAsyncConnection:
        connection = await GuardedAsyncConnection.connect(*args, cursor_factory=GuardedAsyncCursor, **more)
        connection.guard = guard
        return connection

    options["async_creator_fn"] = create
