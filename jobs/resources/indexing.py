"""Keep the full-text index in step with the resources."""

from __future__ import annotations

from typing import Final

import dramatiq
from dramatiq.errors import Retry
from sqlalchemy import Connection, select
from sqlalchemy.exc import OperationalError

from middleware import Invalid, effect

from .. import store
from ..models import Base
from .full_text import NO_WORDS, is_known, words, write_entry

_RESOURCES: Final = Base.metadata.tables["resources"]
_TOO_LONG: Final = "54000"
"""PostgreSQL's program_limit_exceeded: a tsvector takes at most 1 MB."""


@dramatiq.actor(queue_name="indexing", idempotency_key="resource:{resource_id}:v{version}", effect="late")
def index_resource(resource_id: str, version: int) -> None:
    """Index a resource's version; the entry and the ledger row are one commit.

    A long text is taken apart outside any transaction. Jobs may come in any order: if the resource has a
    newer version by now, this one does nothing, because that version has a job of its own; and an entry never
    gives way to an older one. Deleting a resource is a change like any other, with a version and a job: that
    takes its words out of the index. A resource that is made anew under the same id goes on counting.

    Parameters:
        resource_id: names the resource.
        version: the version that its change made.

    Raises:
        Invalid: there is no such resource and the index knows of none, or it is too long for the index.
        Retry: the version is not there yet: again with backoff.
    """
    r = _RESOURCES.c
    with store.engine.connect() as connection:
        resource = connection.execute(
            select(r.version, r.title, r.body).where(r.id == resource_id)
        ).one_or_none()
        if resource is None and not is_known(connection, resource_id):
            raise Invalid(f"expected a resource {resource_id!r}, got: none, nor one in the index")
    terms: str | None
    if resource is None:
        terms = NO_WORDS
    elif resource.version < version:
        raise Retry(f"resource {resource_id!r} is at version {resource.version}, not yet at {version}")
    else:
        terms = words(f"{resource.title} {resource.body}") if resource.version == version else None
    with effect() as session:
        if terms is not None:
            _write(session.connection(), resource_id, version, terms)


def _write(connection: Connection, resource_id: str, version: int, terms: str) -> None:
    try:
        write_entry(connection, resource_id, version, terms)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) == _TOO_LONG:
            raise Invalid(f"resource {resource_id!r} is too long to be indexed: {error.orig}") from error
        raise
