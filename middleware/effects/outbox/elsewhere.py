"""Is a session of the database whose outbox is emptied? What is written in another one is never sent."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.orm import Session

from ...errors import NotEnqueued
from ...store import Store
from .row import OutboxRow


def check_database(session: Session, store: Store) -> None:
    """Refuse a session that is certainly of another database; one that has other names for it is taken.

    Raises:
        NotEnqueued: it is.
        sqlalchemy.exc.UnboundExecutionError: it is of none.
    """
    theirs = session.get_bind(OutboxRow).engine.url
    if _is_another(theirs, store.url):
        raise NotEnqueued(
            f"expected the session to be of the database of JOBS_DATABASE_URL ({_shown(store.url)}), got: "
            f"{_shown(theirs)}, whose outbox nobody empties; enqueue in a session of that one, or send"
        )


def _is_another(theirs: URL, ours: URL) -> bool:
    if theirs.get_backend_name() != ours.get_backend_name():
        return True
    if ours.get_backend_name() == "sqlite":
        return _file(theirs) != _file(ours)
    is_same_server = theirs.host is not None and (theirs.host, theirs.port) == (ours.host, ours.port)
    return is_same_server and theirs.database is not None and theirs.database != ours.database


def _file(url: URL) -> Path:
    return Path((url.database or "").removeprefix("file:").partition("?")[0]).resolve()


def _shown(url: URL) -> str:
    return url.render_as_string()  # without the password
