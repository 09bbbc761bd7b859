"""How is a row inserted that may be there already? Both databases say it alike, SQLAlchemy in two classes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_into(connection: Connection, table: Table) -> Any:
    """Return an INSERT of the database's own, with `on_conflict_do_nothing` and `on_conflict_do_update`.

    Parameters:
        connection: on which it is to run.
        table: where to.
    """
    return (sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert)(table)
