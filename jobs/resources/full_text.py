"""Which resources say what somebody looks for? The full-text index: `tsvector` on PostgreSQL, FTS5 on SQLite.

Both get texts and queries that `words()` has split, because each splits in its own way: PostgreSQL's parser
keeps addresses, URLs and versions in one piece. So what one database finds, the other finds as well, but for
letters that are younger than its tables of Unicode.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, func, select, text
from sqlalchemy.dialects import postgresql, sqlite

from .. import store
from ..models import Base

_INDEX: Final = Base.metadata.tables["resource_index"]

_CONFIGURATION: Final = "simple"
"""PostgreSQL's one without stemming and without words that do not count, as FTS5 has it."""
_LONGEST: Final = 500
"""Characters of a word that count. PostgreSQL leaves out words of more than 2,047 bytes, with a notice."""

MOST_WORDS: Final = 100
"""Different words of a query. PostgreSQL's stack, or its 1 MB for a query, ends far above."""
NO_WORDS: Final = ""
"""What a resource says that is gone."""

_POSTGRESQL: Final = text(
    f"SELECT resource_id, version FROM resource_index, plainto_tsquery('{_CONFIGURATION}', :words) AS query "
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


def search(query: str, *, limit: int = 20) -> list[Found]:
    """Return the resources that have all the words, the best first.

    Parameters:
        query: at most 100 different words; nothing in them is an operator. Without a word nothing is found.
        limit: how many to return at most. Defaults to 20.

    Raises:
        ValueError: the query has too many words.
    """
    different = dict.fromkeys(words(query).split())
    if not different:  # no query at all for FTS5
        return []
    if len(different) > MOST_WORDS:
        raise ValueError(
            f"expected a query of at most {MOST_WORDS} different words, got: {len(different)}; use fewer"
        )
    with store.engine.connect() as connection:
        statement = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
        rows = connection.execute(statement, {"words": " ".join(different), "limit": limit})
        return [Found(row.resource_id, row.version) for row in rows]


def is_known(connection: Connection, resource_id: str) -> bool:
    """Return whether the index knows a resource, be it one that is gone.

    Parameters:
        connection: to the database.
        resource_id: names the resource.
    """
    entry = select(_INDEX.c.id).where(_INDEX.c.resource_id == resource_id)
    return connection.execute(entry).one_or_none() is not None


def write_entry(connection: Connection, resource_id: str, version: int, terms: str) -> None:
    """Index a version of a resource, unless the index knows this version or a newer one.

    Parameters:
        connection: in a transaction, which the caller commits.
        resource_id: names the resource.
        version: the version.
        terms: what it says, as `words()` returns it; `NO_WORDS` if it is gone.

    Raises:
        sqlalchemy.exc.OperationalError: PostgreSQL takes no text of so many words.
    """
    insert: Any = sqlite.insert
    indexed: Any = terms
    if connection.dialect.name != "sqlite":
        insert, indexed = postgresql.insert, func.to_tsvector(_CONFIGURATION, terms)
    new = insert(_INDEX).values(resource_id=resource_id, version=version, terms=indexed)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["resource_id"],
            set_={"version": new.excluded.version, "terms": new.excluded.terms},
            where=_INDEX.c.version < new.excluded.version,
        )
    )


def words(said: str) -> str:
    """Return a text's words with blanks between them: letters and digits, without upper case.

    Nothing in the result is an operator to FTS5: its `AND`, `OR` and `NOT` are upper case.

    >>> words("Mail Ada@example.com, see https://example.com/v2.0.1: foo-bar AND 'snake_case'")
    'mail ada example com see https example com v2 0 1 foo bar and snake case'
    """
    folded = unicodedata.normalize("NFKC", said).casefold()
    split = "".join(each if each.isalpha() or each.isdecimal() else " " for each in folded).split()
    return " ".join(word[:_LONGEST] for word in split)
