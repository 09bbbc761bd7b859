"""Both branches of migrations create what the code declares, on both databases, up and down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Index, MetaData, inspect, text

from jobs.models import Base
from middleware import ConfigurationError
from middleware.store import Store, metadata, migrate, migrate_down
from middleware.store.migrate import LIBRARY, Migrated, application_branch

from ..fixtures_database import new_database

VERSIONS = {"job_library_version", "job_application_version"}
HEADS = [Migrated("library", None, "0005"), Migrated("application", None, "0002")]


@pytest.fixture(params=["postgresql", "sqlite"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/100%.sqlite3"
        return
    with new_database() as url:
        yield url


def tables(url: str) -> set[str]:
    """Return the names of the database's tables."""
    store = Store(url)
    names = set(inspect(store.engine).get_table_names())
    store.dispose()
    return names


def is_internal(name: str) -> bool:
    """Whether a table is Alembic's own, or one of those that FTS5 keeps SQLite's full-text index in."""
    return name in VERSIONS or name.startswith("resource_terms")


def is_for(store: Store, thing: Any) -> bool:
    """Whether something that is declared is meant for this kind of database; GIN indexes are PostgreSQL's."""
    return not (store.is_sqlite and isinstance(thing, Index) and thing.kwargs.get("postgresql_using"))


def test_a_fresh_install_has_what_the_models_declare(empty_url: str) -> None:
    """The migrated tables differ in nothing from the declared ones: no table, column, type or default."""
    assert migrate(empty_url) == HEADS
    declared = MetaData()
    for source in (metadata, Base.metadata):
        for table in source.tables.values():
            table.to_metadata(declared)
    store = Store(empty_url)
    with store.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_name": lambda name, kind, _: kind != "table" or not is_internal(name),
                "include_object": lambda thing, *_: is_for(store, thing),
            },
        )
        assert compare_metadata(context, declared) == []
        checks = {
            (table, check["name"], check["sqltext"].strip("()").replace('"', ""))
            for table in Base.metadata.tables
            for check in inspect(connection).get_check_constraints(table)
        }
    store.dispose()
    assert checks == {
        ("accounts", "ck_accounts_balance", "balance >= 0"),
        ("usages", "ck_usages_cost", "cost > 0"),
        ("credit_entries", "ck_credit_entries_amount", "amount > 0"),
        ("chat_messages", "ck_chat_messages_position", "position > 0"),
        ("resources", "ck_resources_version", "version > 0"),
    }


def test_up_down_and_up_again(empty_url: str) -> None:
    """Going down removes every table but the empty version tables; going up again brings all back."""
    migrate(empty_url)
    full = tables(empty_url)
    assert migrate_down(empty_url) == [
        Migrated("application", "0002", None),
        Migrated("library", "0005", None),
    ]
    assert tables(empty_url) == VERSIONS
    assert migrate(empty_url) == HEADS
    assert tables(empty_url) == full


def test_a_second_run_does_nothing(empty_url: str) -> None:
    """A migrated database is left as it is, data included."""
    migrate(empty_url)
    store = Store(empty_url)
    with store.engine.begin() as connection:
        connection.execute(text("INSERT INTO accounts (id, balance) VALUES ('a', 1)"))
    assert migrate(empty_url) == [
        Migrated("library", "0005", "0005"),
        Migrated("application", "0002", "0002"),
    ]
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT balance FROM accounts")).scalar() == 1
    store.dispose()


def test_concurrent_runs_are_one(empty_url: str) -> None:
    """Six runs at once, as of a deployment's six pods, all succeed, and one of them does the work."""
    results: list[Any] = []
    ready = threading.Barrier(6)

    def run() -> None:
        ready.wait(20)
        try:
            results.append(migrate(empty_url))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results.count(HEADS) == 1
    assert [each for each in results if not isinstance(each, list)] == []


def test_a_migration_that_fails_leaves_nothing_half_done(empty_url: str) -> None:
    """A migration that cannot be applied leaves no table; after the repair, the next run does it all."""
    store = Store(empty_url)
    with store.engine.begin() as connection:
        connection.execute(text("CREATE TABLE usages (id int)"))
    with pytest.raises(Exception, match="usages"):
        migrate(empty_url)
    assert tables(empty_url) == {"usages"}
    with store.engine.begin() as connection:
        connection.execute(text("DROP TABLE usages"))
    store.dispose()
    assert migrate(empty_url) == HEADS
    assert {"accounts", "credit_entries", "job_ledger"} <= tables(empty_url)


def test_tables_of_another_version_are_left_alone(empty_url: str) -> None:
    """A version that has no such migration names both, and changes nothing."""
    migrate(empty_url)
    store = Store(empty_url)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE job_application_version SET version_num = '9999'"))
    with pytest.raises(ConfigurationError, match=r"branch 'application' to be at one of .*, got: 9999; run"):
        migrate(empty_url)
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM job_application_version")).scalar() == "9999"
    store.dispose()


def test_the_librarys_branch_runs_alone(empty_url: str) -> None:
    """An application that keeps its tables elsewhere gets the library's alone."""
    assert migrate(empty_url, application=None) == HEADS[:1]
    assert tables(empty_url) == {*metadata.tables, "job_library_version"}


def test_an_application_is_found_by_its_name() -> None:
    """A package's own branch is in its folder `migrations`; one without has none; a wrong name is told."""
    branch = application_branch("jobs")
    assert branch is not None
    assert branch.folder.parts[-2:] == ("jobs", "migrations")
    assert branch.version_table != LIBRARY.version_table
    assert application_branch("json") is None
    with pytest.raises(
        ConfigurationError, match=r"expected the application to be a module.*'absent'; .*JOBS_APP"
    ):
        application_branch("absent")


def test_defaults_come_from_the_database(database_url: str) -> None:
    """Rows written with plain SQL need no more than the columns that mean something."""
    store = Store(database_url)
    with store.engine.begin() as connection:
        connection.execute(text("INSERT INTO accounts (id, balance) VALUES ('a', 5)"))
        connection.execute(
            text("INSERT INTO usages (task_id, message_id, account_id, cost) VALUES ('t', 'm', 'a', 1)")
        )
        connection.execute(
            text("INSERT INTO credit_entries (reference, account_id, amount) VALUES ('r', 'a', 1)")
        )
        assert connection.execute(text("SELECT created_at FROM credit_entries")).scalar() is not None
    store.dispose()


def test_a_row_of_the_ledger_is_small(postgresql: Store) -> None:
    """Table and index together take less than 250 bytes a row, with keys as long as the sample's."""
    with postgresql.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO job_ledger (key, args_hash, actor, message_id) "
            "SELECT 'credit:task-' || n || ':message-' || n, decode(md5(n::text), 'hex'), 'charge_credit', "
            "gen_random_uuid()::text FROM generate_series(1, 20000) n"
        )
        size = connection.execute(text("SELECT pg_total_relation_size('job_ledger')")).scalar_one()
    assert size / 20000 < 250
