"""How does Alembic run a branch's migrations? What the `env.py` of each branch calls.

Migrations are written by hand and never import the application: they run before it can start. A test
compares what they create with what the models declare.
"""

from __future__ import annotations

from alembic import context


def run_migrations() -> None:
    """Run what the command asked for, in the transaction that `migrate` holds."""
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=context.config.attributes["version_table"],
        transactional_ddl=True,  # SQLite's DDL can be rolled back as well
    )
    with context.begin_transaction():
        context.run_migrations()
