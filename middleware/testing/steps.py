"""Which steps does a job take in its database? Each statement and commit, before and after it.

The ledger speaks to the drivers below SQLAlchemy where it opens and ends its transaction; so it is watched in
two places: SQLAlchemy's events for statements, and the dialect's own COMMIT and the ledger's INSERT.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.util import await_only

from ..effects.entry import Entry, Limits
from ..effects.ledger import Ledger
from ..store import job_watermark
from .life import COMMIT, Crashed, Life, Point

KEY: Final = "the INSERT of the key"
_LONGEST: Final = 40
"""Characters of a statement that name it."""


class Steps:
    """Tells the lives of deliveries of their steps while the `with` block runs.

    Parameters:
        ledger: of the broker; None if it has none.
        life: returns the life of this thread's or coroutine's delivery, None if it has none.
    """

    def __init__(self, ledger: Ledger | None, life: Callable[[], Life | None]) -> None:
        self._ledger = ledger
        self._life = life
        self._dialects: list[Any] = []
        # Of the class, not of an engine: that of an event loop is made when its first job runs.
        self._listeners: list[tuple[str, Callable[..., Any]]] = [
            ("engine_connect", self._connected),
            ("before_cursor_execute", self._before_statement),
            ("after_cursor_execute", self._after_statement),
            ("rollback", self._rolled_back),
        ]

    def __enter__(self) -> Steps:
        """Begin to watch."""
        for name, listener in self._listeners:
            event.listen(Engine, name, listener)
        if self._ledger is not None:
            database: Any = self._ledger._database
            self._open, database.open = database.open, self._open_watched
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave everything as it was."""
        for name, listener in self._listeners:
            event.remove(Engine, name, listener)
        if self._ledger is not None:
            del self._ledger._database.open  # the instance's, not the class's
        for dialect in self._dialects:
            del dialect.do_commit

    # --- the ledger's own ---

    def _open_watched(self, connection: Connection, entry: Entry, limits: Limits) -> Any:
        life = self._life()
        if life is None:
            return self._open(connection, entry, limits)
        driver, is_async = connection.connection, connection.dialect.is_async
        self._pass(life, Point("before", KEY), driver, is_async=is_async)
        life.is_open = True
        message = self._open(connection, entry, limits)
        life.has_key = message is not None
        self._pass(life, Point("after", KEY), driver, is_async=is_async)
        return message

    # --- SQLAlchemy's ---

    def _connected(self, connection: Connection) -> None:
        dialect: Any = connection.engine.dialect
        if "do_commit" not in vars(dialect):
            dialect.do_commit = self._watched_commit(dialect, dialect.do_commit)
            self._dialects.append(dialect)

    def _watched_commit(self, dialect: Any, commit: Callable[[Any], None]) -> Callable[[Any], None]:
        def do_commit(connection: Any) -> None:
            life = self._life()
            if life is None:
                commit(connection)
                return
            number = life.count(COMMIT)
            step = COMMIT if number == 1 else f"{COMMIT} {number}"
            life.backend = _backend(connection)
            self._pass(life, Point("before", step), connection, is_async=dialect.is_async)
            commit(connection)
            life.is_open = life.has_key = False
            self._pass(life, Point("after", step), connection, is_async=dialect.is_async)

        return do_commit

    def _before_statement(
        self, connection: Connection, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: Any
    ) -> None:
        life = self._life()
        if (
            life is not None and job_watermark.name not in statement
        ):  # read once in a while, by whoever is next
            context._jobs_step = f"statement {life.count('statement')} ({_short(statement)})"
            self._pass_with(life, Point("before", context._jobs_step), connection)
            life.is_open = True

    def _after_statement(
        self, connection: Connection, _cursor: Any, _text: str, _parameters: Any, context: Any, _many: Any
    ) -> None:
        life = self._life()
        step = getattr(context, "_jobs_step", None)
        if life is not None and step is not None:
            self._pass_with(life, Point("after", step), connection)

    def _rolled_back(self, _connection: Connection) -> None:
        life = self._life()
        if life is not None:
            life.is_open = False

    def _pass_with(self, life: Life, point: Point, connection: Connection) -> None:
        self._pass(life, point, connection.connection, is_async=connection.dialect.is_async)

    def _pass(self, life: Life, point: Point, driver: Any, *, is_async: bool) -> None:
        store = None if self._ledger is None else self._ledger._store
        life.has_turn = store is not None and store.is_sqlite and store.writers._taken
        try:
            held = life.at(point.side, point.step)
        except Crashed:
            with suppress(Exception):
                driver.rollback()  # a cursor in some frame of the traceback would keep SQLite's file locked
            raise
        if held is not None and is_async:
            await_only(_thawed(held))
        elif held is not None:
            held.result()


async def _thawed(held: Future[None]) -> None:
    await asyncio.wrap_future(held)


def _backend(connection: Any) -> int | None:
    driver = connection.driver_connection
    info = getattr(driver, "info", None)
    return None if info is None else info.backend_pid


def _short(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
