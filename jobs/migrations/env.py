"""Alembic's entry to the application's branch.

A change of the tables is a file in `versions/`, numbered and written by hand: `m0003_orders.py` with
`revision = "0003"` and `down_revision = "0002"`. `jobsctl migrate` applies it.
"""

from __future__ import annotations

from middleware.store.environment import run_migrations

run_migrations()
