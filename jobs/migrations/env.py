"""Alembic's entry to the application's branch."""

from __future__ import annotations

from middleware.store.environment import run_migrations

run_migrations()
