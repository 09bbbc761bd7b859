"""Keep the full-text index in step with the resources."""

from __future__ import annotations

from typing import Final

import dramatiq
from dramatiq.errors import Retry
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from middleware import Invalid, current_session

from ..models import Base
from .full_text import write_entry

_RESOURCES: Final = Base.metadata.tables["resources"]
_TOO_LONG: Final = "54000"
"""PostgreSQL's program_limit_exceeded: a tsvector takes at most 1 MB."""


@dramatiq.actor(queue_name="indexing", idempotency_key="resource:{resource_id}:v{version}")
def index_resource(resource_id: str, version: int) -> None:
    """Index a resource's version; the entry and the ledger row are one commit.

    Jobs may come in any order: if the resource has a newer version by now, this one does nothing, because
    that version has a job of its own; and an entry never gives way to an older one.

    Parameters:
        resource_id: names the resource.
        version: the version that its change made.

    Raises:
        Invalid: there is no such resource, or it is too long for the index.
        Retry: the version is not there yet: again with backoff.
    """
    session = current_session()
    current = session.scalar(select(_RESOURCES.c.version).where(_RESOURCES.c.id == resource_id))
    if current is None:
        raise Invalid(f"expected a resource {resource_id!r}, got: none")
    if current < version:
        raise Retry(f"resource {resource_id!r} is at version {current}, not yet at {version}")
    if current > version:
        return
    try:
        write_entry(session.connection(), resource_id)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) == _TOO_LONG:
            raise Invalid(f"resource {resource_id!r} is too long to be indexed: {error.orig}") from error
        raise
