"""Databases for tests: a PostgreSQL database or an SQLite file of their own, migrated, gone with the test."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL, make_url

from middleware.store import Store, migrate

from .fixtures_broker import service_url


def _server() -> URL:
    return make_url(service_url("JOBS_TEST_DATABASE_URL"))


def _administrate(statement: str) -> None:
    with psycopg.connect(
        _server().set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True
    ) as connection:
        connection.execute(statement.encode())


@contextmanager
def new_database(template: str = "template1") -> Iterator[str]:
    """Yield the URL of a new PostgreSQL database.

    Parameters:
        template: the database to copy. Defaults to an empty one.
    """
    name = f"test_{uuid.uuid4().hex[:12]}"
    _administrate(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield _server().set(database=name).render_as_string(hide_password=False)
    finally:
        _administrate(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def _spares_the_disk() -> None:
    """A server of this run's own may forget all if the machine loses power; killed, it still remembers."""
    if os.environ.get("JOBS_TEST_OWNED") == "1":
        _administrate("ALTER SYSTEM SET fsync = off")
        _administrate("ALTER SYSTEM SET full_page_writes = off")
        _administrate("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def postgresql_template(_spares_the_disk: None) -> Iterator[str]:
    """The name of a migrated PostgreSQL database."""
    with new_database() as url:
        migrate(url)
        yield str(make_url(url).database)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file."""
    file = tmp_path_factory.mktemp("template") / "jobs.sqlite3"
    migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def postgresql_url(postgresql_template: str) -> Iterator[str]:
    """The URL of a migrated PostgreSQL database."""
    with new_database(postgresql_template) as url:
        yield url


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a migrated SQLite file."""
    file = tmp_path / "jobs.sqlite3"
    shutil.copy(sqlite_template, file)
    return f"sqlite:///{file}"


@pytest.fixture(params=["postgresql", "sqlite"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database; a test that uses this runs once with each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """The store of a migrated database of either kind."""
    store = Store(database_url)
    yield store
    store.dispose()


@pytest.fixture
def postgresql(postgresql_url: str) -> Iterator[Store]:
    """The store of a migrated PostgreSQL database."""
    store = Store(postgresql_url)
    yield store
    store.dispose()


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Store]:
    """The store of a migrated SQLite file."""
    store = Store(sqlite_url)
    yield store
    store.dispose()
