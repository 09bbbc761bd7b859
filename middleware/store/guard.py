"""Who may end the transaction on a connection? Its owner, if it has one; the drivers' connections ask here.

A guard stands below SQLAlchemy, so that no way of committing goes past it, and so that statements pay
nothing for it: SQLAlchemy's own events cost a tenth of a small transaction.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError

_KEY: Final = "jobs_guard"
_ENDS_TRANSACTION: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    r"(?:COMMIT|END|ABORT|BEGIN|START\s+TRANSACTION|PREPARE\s+TRANSACTION|ROLLBACK(?!\s+(?:\w+\s+)?TO\b))\b",
    re.IGNORECASE | re.DOTALL,
)

Record: TypeAlias = Any
"""The pool's record of a connection."""


class Owner(Protocol):
    """Whoever alone may end the transaction on a connection.

    Attributes:
        ending: it ends the transaction now.
        commit_message: what the connection sends to commit; see the driver's guarded connection.
    """

    ending: bool
    commit_message: Any

    def refuse(self, what: str) -> NoReturn:
        """Raise: somebody else tries to end the transaction."""
        ...

    def failed(self, connection: Connection, error: DBAPIError) -> None:
        """Note an SQL error on the connection."""
        ...


class Guard:
    """Stands between one connection of a driver and the end of its transaction.

    Attributes:
        owner: None lets everybody commit.
    """

    __slots__ = ("owner",)

    def __init__(self) -> None:
        self.owner: Owner | None = None

    def before_statement(self, sql: object) -> None:
        """Refuse SQL that ends the transaction: what it commits could not be taken back."""
        if self.owner is not None and isinstance(sql, str) and _ENDS_TRANSACTION.match(sql):
            self.owner.refuse(repr(sql.strip()[:80]))

    def before_commit(self) -> Owner | None:
        """Refuse a commit that the owner did not ask for; return the owner, if there is one."""
        if self.owner is not None and not self.owner.ending:
            self.owner.refuse("commit() of the session's connection or transaction")
        return self.owner


def new_guard(record: Record) -> Guard:
    """Return the guard of a connection that the pool is about to open."""
    guard = record.info[_KEY] = Guard()
    return guard


def guard_of(connection: Connection) -> Guard:
    """Return the guard of the driver's connection below."""
    guard: Guard = connection.info[_KEY]
    return guard


def tell_owner(context: ExceptionContext) -> None:
    """Tell a transaction's owner of an SQL error; SQLAlchemy calls it for every one."""
    connection, error = context.connection, context.sqlalchemy_exception
    if connection is None or connection.closed or connection.invalidated or not isinstance(error, DBAPIError):
        return
    owner = guard_of(connection).owner
    if owner is not None:
        owner.failed(connection, error)
