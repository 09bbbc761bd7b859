"""`jobsctl migrate`: does the database have the tables of this version?"""

from __future__ import annotations

import typer

from ..store import migrate as migrate_database
from ..store.migrate import Migrated
from .application import load_application


def migrate() -> None:
    """Create or upgrade the tables, the kit's and the application's; does nothing if they are current."""
    application, _ = load_application()
    url = application.store.url.render_as_string(hide_password=False)
    for branch in migrate_database(url, application=application.__name__):
        typer.echo(_tell(branch))


def _tell(done: Migrated) -> str:
    if done.before == done.after:
        return f"{done.branch}: is at {done.after}"
    return f"{done.branch}: {done.before or 'no tables'} → {done.after}"
