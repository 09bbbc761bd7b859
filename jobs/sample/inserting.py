"""How do sample rows get into a table without touching those that are there?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from ..models import Base

_BATCH: Final = 1000


def insert_missing(connection: Connection, table_name: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Insert the rows that are not there yet, in batches of 1,000.

    Parameters:
        connection: in a transaction, which the caller commits.
        table_name: one of the application's tables.
        rows: column → value, all with the same columns.

    Returns:
        How many rows were inserted.

    Raises:
        KeyError: there is no such table.
    """
    table = Base.metadata.tables[table_name]
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).on_conflict_do_nothing().returning(table.primary_key.columns[0])
    left, new = iter(rows), 0
    while batch := list(itertools.islice(left, _BATCH)):
        new += len(connection.execute(statement, batch).all())
    return new
