"""Which resources say what somebody looks for? The full-text index: `tsvector` on PostgreSQL, FTS5 on SQLite.

On both, words are compared in lower case, without stemming: what one database finds, the other finds as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, func, select, text
from sqlalchemy.dialects import postgresql, sqlite

from . import store
from .models import Base

_RESOURCES: Final = Base.metadata.tables["resources"]
_INDEX: Final = Base.metadata.tables["resource_index"]
_CONFIGURATION: Final = "simple"

_POSTGRESQL: Final = text(
    "SELECT resource_id, version FROM resource_index, plainto_tsquery('simple', :words) AS query "
    "WHERE terms @@ query ORDER BY ts_rank(terms, query) DESC, resource_id LIMIT :limit"
)
_SQLITE: Final = text(
    "SELECT resource_id, version FROM resource_terms JOIN resource_index ON id = resource_terms.rowid "
    "WHERE resource_terms MATCH :words ORDER BY rank, resource_id LIMIT :limit"
)


@dataclass(frozen=True)
class Found:
    """A resource that was found, and the version of it that the index knows."""

    resource_id: str
    version: int


def search(words: str, *, limit: int = 20) -> list[Found]:
    """Return the resources that have all the words, the best first.

    Parameters:
        words: plain words; nothing in them is an operator.
        limit: how many to return at most. Defaults to 20.
    """
    with store.engine.connect() as connection:
        return find(connection, words, limit)


def find(connection: Connection, words: str, limit: int) -> list[Found]:
    """Do the same on a connection."""
    if not words.strip():  # no query at all for FTS5
        return []
    statement = _POSTGRESQL
    if connection.dialect.name == "sqlite":
        statement, words = _SQLITE, _quoted(words)
    rows = connection.execute(statement, {"words": words, "limit": limit})
    return [Found(row.resource_id, row.version) for row in rows]


def write_entry(connection: Connection, resource_id: str) -> None:
    """Index a resource as it is now, unless the index knows this version or a newer one."""
    r = _RESOURCES.c
    content: Any = r.title + " " + r.body
    insert: Any = sqlite.insert
    if connection.dialect.name != "sqlite":
        insert, content = postgresql.insert, func.to_tsvector(_CONFIGURATION, content)
    now = select(r.id, r.version, content).where(r.id == resource_id)
    new = insert(_INDEX).from_select(["resource_id", "version", "terms"], now)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["resource_id"],
            set_={"version": new.excluded.version, "terms": new.excluded.terms},
            where=_INDEX.c.version < new.excluded.version,
        )
    )


def _quoted(words: str) -> str:
    """Return words as FTS5 takes them when it is to find in them no operators.

    >>> _quoted('cats AND "dogs"')
    '"cats" "AND" \"""dogs\"""'
    """
    return " ".join('"' + word.replace('"', '""') + '"' for word in words.split())
