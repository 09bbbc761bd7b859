"""Alembic's entry to the library's branch."""

from __future__ import annotations

from middleware.store.environment import run_migrations

run_migrations()
