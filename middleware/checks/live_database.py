"""Is the database ready for this version and for what the ledger relies on? Only asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from ..effects.startup import Refused, check_store
from ..store import Store
from ..store.migrate import behind
from .finding import Finding


def check_database(store: Store, application: str | None, threads: int) -> Iterator[Finding]:
    """Yield why workers would refuse the database, and which tables are not those of this version.

    Parameters:
        store: the application's.
        application: its import name, whose own migrations are asked for; None for the library's alone.
        threads: of a worker.
    """
    if store.is_sqlite and not Path(str(store.url.database)).exists():
        yield _finding(
            f"expected the SQLite file {store.url.database!r} to exist, got: none", "run `jobsctl migrate`"
        )
        return
    try:
        check_store(store, threads)
    except Refused as refused:
        why, _, fix = str(refused).rpartition("; ")
        yield _finding(why, fix)
        return
    try:
        for branch in behind(store, application=application):
            yield _finding(
                f"expected the tables of branch {branch.branch!r} to be at {branch.after}, got: "
                f"{branch.before or 'none'}",
                "run `jobsctl migrate`",
            )
    except DBAPIError as error:
        yield _finding(f"the database fails: {error.orig}", "see its log")


def _finding(why: str, fix: str) -> Finding:
    return Finding("", 0, "JOB305", why, fix)
