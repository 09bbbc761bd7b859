"""Which database do effects go to, and how is it reached?"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ..durations import format_duration
from ..errors import ConfigurationError
from . import postgresql, sqlite
from .guard import tell_owner
from .writers import WriterQueue

_CONNECT: Final = {
    # A host that no longer answers must not hold a worker thread for the system's two hours.
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_PREPARE: Final = "prepare_threshold"


class Store:
    """A PostgreSQL database or an SQLite file; connects on first use, and anew in a forked child.

    Parameters:
        url: `postgresql+psycopg://user:password@host:port/database` or `sqlite:///file`. Behind PgBouncer in
            transaction mode, before its version 1.21, with `?prepare_threshold=none`: nothing is prepared.
        pool_size: connections that each engine keeps open; a worker needs one for every thread.
            Defaults to 16.

    Connections are not tried before they are handed out (`pool_pre_ping`): that is a round trip for every
    job. The ledger meets a dead one with the first statement of its transaction and takes another.

    Raises:
        ConfigurationError: the URL names another database, or SQLite in memory.
    """

    def __init__(self, url: str, *, pool_size: int = 16) -> None:
        self.url = _checked(url)
        self.pool_size = pool_size
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._lock = threading.RLock()
        self._parents: list[object] = []
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self.writers = WriterQueue()
        self._engine: Engine | None = None
        self._fresh: Engine | None = None
        self._stateless: Engine | None = None
        self._async: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncEngine]
        self._async = weakref.WeakKeyDictionary()

    @property
    def engine(self) -> Engine:
        """The engine for threads."""
        if self._engine is None or self._pid != os.getpid():
            with self._lock:
                self._leave_to_parent()
                if self._engine is None:
                    self._engine = create_engine(self.url, **self._options())
                    self._prepare(self._engine)
        return self._engine

    @property
    def async_engine(self) -> AsyncEngine:
        """The engine of the running event loop; each loop has its own, as its connections belong to it.

        Raises:
            RuntimeError: no event loop runs in this thread.
        """
        loop = asyncio.get_running_loop()
        engine = self._async.get(loop)
        if engine is None or self._pid != os.getpid():
            with self._lock:
                self._leave_to_parent()
                engine = create_async_engine(_asynchronous(self.url), **self._options())
                self._prepare(engine.sync_engine)
                self._async[loop] = engine
        return engine

    @property
    def fresh_engine(self) -> Engine:
        """An engine whose every connection is a new one, to look at what a lost connection left."""
        with self._lock:
            self._leave_to_parent()
            if self._fresh is None:
                self._fresh = create_engine(self.url, poolclass=NullPool, connect_args=self._connect_args())
                self._prepare(self._fresh)
        return self._fresh

    @contextmanager
    def stateless(self, wait: timedelta = timedelta(seconds=30)) -> Iterator[Connection]:
        """Give the block a connection on which each statement is a transaction of its own.

        It prepares no statement and leaves no state behind, so that it may lead through PgBouncer in
        transaction mode. On SQLite it takes its turn among this process's writers, as `writing`.

        Parameters:
            wait: how long to wait for the turn. Defaults to 30 seconds.

        Raises:
            TimeoutError: the turn did not come.
        """
        with self._turn(wait), self._stateless_engine().connect() as connection:
            yield connection

    def _stateless_engine(self) -> Engine:
        with self._lock:
            self._leave_to_parent()
            if self._stateless is None:
                arguments = self._connect_args()
                if not self.is_sqlite:
                    arguments[_PREPARE] = None
                self._stateless = create_engine(
                    self.url,
                    pool_size=self.pool_size,
                    isolation_level="AUTOCOMMIT",
                    connect_args=arguments,
                )
                self._prepare(self._stateless)
        return self._stateless

    @contextmanager
    def writing(self, wait: timedelta = timedelta(seconds=30)) -> Iterator[Connection]:
        """Give the block a transaction of its own, committed at its end: for what is written without a key.

        On SQLite it takes its turn among this process's writers: SQLite itself only polls, and under load the
        same connection may lose every time.

        Parameters:
            wait: how long to wait for the turn. Defaults to 30 seconds.

        Raises:
            TimeoutError: the turn did not come.
        """
        with self._turn(wait), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _turn(self, wait: timedelta) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        writers = self.writers
        if not writers.acquire(wait.total_seconds()):
            raise TimeoutError(
                f"expected a turn to write to {self.url.database} within {format_duration(wait)}, got: none; "
                "some job holds it that long: keep transactions short, or use PostgreSQL"
            )
        try:
            yield
        finally:
            writers.release()

    def dispose(self) -> None:
        """Close the idle connections of the threads' engines; the next use connects again."""
        with self._lock:
            engines = (self._engine, self._stateless)
            self._engine = self._stateless = None
        for engine in engines:
            if engine is not None:
                engine.dispose()

    async def dispose_async(self) -> None:
        """Close the idle connections of the running loop's engine."""
        engine = self._async.pop(asyncio.get_running_loop(), None)
        if engine is not None:
            await engine.dispose()

    def _leave_to_parent(self) -> None:
        """In a forked child: the sockets are the parent's, so leave them open and start anew."""
        if self._pid == os.getpid():
            return
        # Kept for good: a driver's connection that is finalised here would close it, or warn that it is open.
        self._parents.append((self._engine, self._fresh, self._stateless, list(self._async.values())))
        self._forget()

    def _options(self) -> dict[str, Any]:
        return {"pool_size": self.pool_size, "connect_args": self._connect_args()}

    def _connect_args(self) -> dict[str, Any]:
        if self.is_sqlite:
            return {}
        options: dict[str, Any] = {n: value for n, value in _CONNECT.items() if n not in self.url.query}
        if _PREPARE in self.url.query:  # psycopg takes a number or None, an URL holds text
            text = str(self.url.query[_PREPARE])
            options[_PREPARE] = None if text == "none" else int(text)
        return options

    def _prepare(self, engine: Engine) -> None:
        event.listen(engine, "handle_error", tell_owner)
        if self.is_sqlite:
            event.listen(engine, "do_connect", sqlite.connect)
            event.listen(engine, "connect", sqlite.prepare)
        else:
            is_async = engine.dialect.is_async
            event.listen(engine, "do_connect", postgresql.connect_async if is_async else postgresql.connect)


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is not None and parsed.drivername in ("postgresql", "postgresql+psycopg") and parsed.database:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed is not None and parsed.drivername == "sqlite" and not _is_in_memory(parsed):
        return parsed
    shown = "not a URL" if parsed is None else repr(parsed.render_as_string())  # without the password
    raise ConfigurationError(
        "expected the database URL to be postgresql+psycopg://user:password@host:port/database or "
        f"sqlite:///file, got: {shown}; name the driver as shown and, for SQLite, a file (threads do not "
        "share a database in memory)"
    )


def _is_in_memory(url: URL) -> bool:
    return url.database in (None, "", ":memory:") or "mode=memory" in f"{url.database}{url.query}"


def _asynchronous(url: URL) -> URL:
    return url.set(drivername="sqlite+aiosqlite") if url.drivername == "sqlite" else url
