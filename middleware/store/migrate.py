"""How do the tables get into the database? Two branches of migrations: the library's and the application's.

Each has its folder and its own version table, so that an application brings, replaces or drops its branch
without touching the library's. A new migration is a new file in `versions/`, numbered, written by hand.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from ..errors import ConfigurationError
from .database import Store

if TYPE_CHECKING:
    from alembic.config import Config

# Before the versions are read: who comes second finds the work done. The number spells "jobs".
_ALONE_POSTGRESQL: Final = f"SELECT pg_advisory_xact_lock({0x6A6F6273})"
_ALONE_SQLITE: Final = "BEGIN IMMEDIATE"


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of migrations.

    Attributes:
        name: for people.
        folder: holds `env.py` and `versions/`.
        version_table: where the database notes how far the branch has come.
    """

    name: str
    folder: Path
    version_table: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a run did to a branch; None stands for a database without the branch's tables."""

    branch: str
    before: str | None
    after: str | None


LIBRARY: Final = Branch("library", Path(__file__).parent / "migrations", "job_library_version")


def application_branch(application: str) -> Branch | None:
    """Return the branch in the folder `migrations` of an application's package, None if it has none.

    Parameters:
        application: the package's import name. Found, but not imported.

    Raises:
        ConfigurationError: there is no such module.
    """
    spec = importlib.util.find_spec(application)
    if spec is None:
        raise ConfigurationError(
            f"expected the application to be a module that can be imported from here, got: {application!r}; "
            "start in the project's folder, or set JOBS_APP to your application's module"
        )
    for folder in spec.submodule_search_locations or ():
        if (Path(folder) / "migrations" / "env.py").is_file():
            return Branch("application", Path(folder) / "migrations", "job_application_version")
    return None


def migrate(database_url: str, *, application: str | None = "jobs") -> list[Migrated]:
    """Bring the tables up to date; safe to run again, and by several processes at once.

    Parameters:
        database_url: see `Store`.
        application: import name of the package whose own branch runs after the library's; None for the
            library's alone. Defaults to `jobs`.

    Returns:
        What happened to each branch.

    Raises:
        ConfigurationError: the URL or the application is wrong.
        sqlalchemy.exc.OperationalError: the database does not answer.
    """
    return _run(database_url, _branches(application), "head")


def behind(store: Store, *, application: str | None = "jobs") -> list[Migrated]:
    """Return the branches that are not at this version, each with what it is at and what it should be at.

    Parameters:
        store: whose database is asked, and not changed.
        application: see `migrate`.

    Raises:
        ConfigurationError: the application is wrong.
        sqlalchemy.exc.OperationalError: the database does not answer.
    """
    from alembic.script import ScriptDirectory

    found = []
    with store.engine.connect() as connection:
        for branch in _branches(application):
            newest = ScriptDirectory.from_config(_config(branch, connection)).get_current_head()
            there = _version(branch, connection)
            if there != newest:
                found.append(Migrated(branch.name, there, newest))
    return found


def migrate_down(database_url: str, *, application: str | None = "jobs") -> list[Migrated]:
    """Remove the tables of both branches AND THEIR DATA; see `migrate`."""
    return _run(database_url, _branches(application)[::-1], "base")


def _config(branch: Branch, connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("path_separator", "os")
    config.set_main_option("script_location", str(branch.folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = branch.version_table
    return config


def _branches(application: str | None) -> list[Branch]:
    own = None if application is None else application_branch(application)
    return [LIBRARY] if own is None else [LIBRARY, own]


def _run(database_url: str, branches: list[Branch], target: str) -> list[Migrated]:
    store = Store(database_url, pool_size=1)
    try:
        with store.engine.connect() as connection:
            # One transaction, which ends the lock as well: all branches move, or none does.
            connection.exec_driver_sql(_ALONE_SQLITE if store.is_sqlite else _ALONE_POSTGRESQL)
            moved = [_move(branch, connection, target) for branch in branches]
            connection.commit()
            return moved
    finally:
        store.dispose()


def _move(branch: Branch, connection: Connection, target: str) -> Migrated:
    from alembic import command  # here: it takes a third of a second that no worker has to pay

    before = _version(branch, connection)
    config = _config(branch, connection)
    _refuse_unknown(branch, before, config)
    if target == "head":
        command.upgrade(config, target)
    else:
        command.downgrade(config, target)
    return Migrated(branch.name, before, _version(branch, connection))


def _refuse_unknown(branch: Branch, version: str | None, config: Config) -> None:
    """Refuse tables that this version knows no way from: a newer one, or another, made them.

    Raises:
        ConfigurationError: its migrations do not have the version that the database is at.
    """
    from alembic.script import ScriptDirectory

    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise ConfigurationError(
            f"expected the tables of branch {branch.name!r} to be at one of {', '.join(sorted(known))}, got: "
            f"{version}; run the version of the code that has this migration in {branch.folder}/versions"
        )


def _version(branch: Branch, connection: Connection) -> str | None:
    from alembic.runtime.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"version_table": branch.version_table})
    return context.get_current_revision()
