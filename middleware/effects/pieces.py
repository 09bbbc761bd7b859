"""How are the old rows of a large table found and deleted without holding anybody up? A piece at a time.

A piece is a stretch of the table as it lies on the disk, deleted from in a transaction of its own: found
without an index, which every insert would pay for, and without a snapshot that outlives the piece, which
would keep autovacuum from its work. Several pruners skip the rows that another one is deleting.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Select,
    Table,
    and_,
    any_,
    delete,
    func,
    text,
)
from sqlalchemy import literal_column as column

_BLOCKS: Final = 128
"""Pages of PostgreSQL's in a piece, 1 MiB: some 7,000 rows of the ledger, deleted in 15 to 30 ms."""
_ROWS: Final = 1000
"""Row ids of SQLite's in a piece."""
_PER_BLOCK: Final = 291
"""Rows that a page of 8 KiB can have at most."""
_HAS_RANGES: Final = (14,)
"""The version of PostgreSQL that reads a range of a table's pages; before, each row's place is named."""


def places(connection: Connection, table: Table) -> tuple[int, int, int]:
    """Return a table's first place, the one after its last, and how many are a piece."""
    if connection.dialect.name == "sqlite":
        first, last = connection.execute(text(f"SELECT min(rowid), max(rowid) FROM {table.name}")).one()
        return (0, 0, _ROWS) if first is None else (first, last + 1, _ROWS)
    size = "SELECT pg_relation_size(CAST(:table AS regclass)) / current_setting('block_size')::int"
    return 0, connection.execute(text(size), {"table": table.name}).scalar_one(), _BLOCKS


def within(connection: Connection, rows: Any, first: int, end: int) -> ColumnElement[bool]:
    """Return the condition for rows of a stretch.

    Parameters:
        connection: to the database.
        rows: the table's alias.
        first: the stretch's first place.
        end: the one after its last.
    """
    place: ColumnElement[Any] = _place(connection, rows)
    if connection.dialect.name == "sqlite":
        return and_(place >= first, place < end)
    version: Any = connection.dialect.server_version_info
    if version >= _HAS_RANGES:
        return and_(place >= column(f"'({first},0)'::tid"), place < column(f"'({end},0)'::tid"))
    return named(place, first, end)


def named(place: ColumnElement[Any], first: int, end: int) -> ColumnElement[bool]:
    """Return the same condition for PostgreSQL 13."""
    blocks = f"generate_series({first}, {end - 1}) block, generate_series(1, {_PER_BLOCK}) item"
    each = f"SELECT ('(' || block || ',' || item || ')')::tid FROM {blocks}"
    return place == any_(column(f"ARRAY({each})"))


def delete_found(
    connection: Connection, table: Table, rows: Any, found: Select[Any], *, by: str | None = None
) -> Delete:
    """Return the statement that deletes what `found` finds, unless somebody else is about to.

    Parameters:
        connection: to the database.
        table: from which.
        rows: its alias in `found`.
        found: any columns of `rows`.
        by: a column whose other rows are deleted with those that are found. Defaults to their place.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    own, theirs = (
        (_place(connection, table), _place(connection, rows)) if by is None else (table.c[by], rows.c[by])
    )
    some = found.with_only_columns(theirs)
    if is_sqlite:  # has one writer
        return delete(table).where(own.in_(some))
    some = some.with_for_update(skip_locked=True, of=rows)
    return delete(table).where(own == any_(func.array(some.scalar_subquery())))  # ARRAY: found once


def _place(connection: Connection, rows: Any) -> ColumnElement[Any]:
    name = "rowid" if connection.dialect.name == "sqlite" else "ctid"
    return column(f"{rows.name}.{name}")
