"""On which broker and which database do a team's tests run? On none that anybody else uses."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from ..store import migrate

_SETTINGS: Final = {
    "JOBS_ENV_FILE": "",  # no `.env` is read: it names the services that a developer works with
    "JOBS_LEDGER_WAIT": "200ms",
    "JOBS_EFFECT_LEASE": "1s",
}


def isolate(
    *, broker_url: str = "inline://", database_url: str | None = None, application: str = "jobs"
) -> str:
    """Give this process's application services of its own; called in `conftest.py`, before it is imported.

    Sets `JOBS_*` variables, and brings the database's tables up to date.

    Parameters:
        broker_url: defaults to the inline broker: no server.
        database_url: a database whose rows tests may delete. Defaults to a new SQLite file, which goes with
            the process.
        application: import name of the package with the actors. Defaults to `jobs`.

    Returns:
        The database's URL.

    Raises:
        RuntimeError: the application is imported already, and has its settings.
    """
    if application in sys.modules:
        raise RuntimeError(
            f"expected isolate() to be called before {application!r} is imported, got: a call after that; "
            "call it in the first lines of conftest.py"
        )
    url = _new_file() if database_url is None else database_url
    os.environ.update(_SETTINGS, JOBS_BROKER_URL=broker_url, JOBS_DATABASE_URL=url)
    migrate(url, application=application)
    return url


def _new_file() -> str:
    folder = tempfile.mkdtemp(prefix="jobs-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return f"sqlite:///{Path(folder) / 'jobs.sqlite3'}"
