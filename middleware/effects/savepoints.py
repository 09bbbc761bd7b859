"""Has every SQL error been undone by rolling back to a savepoint?

PostgreSQL keeps this count itself. SQLite does not: there an error that an actor swallows would leave half
an effect to be committed.
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError


class Savepoints:
    """The open savepoints of one SQLAlchemy connection, which numbers them from 1.

    Attributes:
        failure: the SQL error that is not undone, the outermost if there are several; None if there is none.
    """

    def __init__(self) -> None:
        self.failure: DBAPIError | None = None
        self._open: list[int] = []
        self._count = 0
        self._failed_in = 0

    def opened(self) -> None:
        """Note a new savepoint."""
        self._count += 1
        self._open.append(self._count)

    def released(self, name: str) -> None:
        """Note that a savepoint, and those in it, became part of what surrounds it."""
        self._close(_number(name))

    def rolled_back(self, name: str) -> None:
        """Note that everything since a savepoint is undone, errors included."""
        number = _number(name)
        if self.failure is not None and self._failed_in >= number:
            self.failure = None
        self._close(number)

    def failed(self, error: DBAPIError) -> None:
        """Note an SQL error in the innermost open savepoint."""
        where = self._open[-1] if self._open else 0
        if self.failure is None or where < self._failed_in:
            self.failure, self._failed_in = error, where

    def _close(self, number: int) -> None:
        while self._open and self._open[-1] >= number:
            self._open.pop()


def _number(name: str) -> int:
    return int(name.rpartition("_")[2])  # sa_savepoint_3
