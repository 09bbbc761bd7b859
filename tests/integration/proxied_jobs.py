"""How does a test lose the connection of a keyed actor at one exact message to PostgreSQL?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from sqlalchemy import make_url

from middleware.store import Store

from .cutting_proxy import CuttingProxy
from .keyed_jobs import KeyedJobs

COMMIT: Final = b"; COMMIT"
"""The message that commits with a key."""
END_OTHERS: Final = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
"""Ends every connection to the database but the one that says so."""


@pytest.fixture
def cutting_proxy(postgresql_url: str) -> Iterator[CuttingProxy]:
    """A proxy in front of the PostgreSQL server."""
    url = make_url(postgresql_url)
    proxy = CuttingProxy(url.host or "127.0.0.1", url.port or 5432)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(cutting_proxy: CuttingProxy, postgresql_url: str, kind: str) -> Iterator[KeyedJobs]:
    """Keyed actors whose connections go through the proxy."""
    url = make_url(postgresql_url).set(host="127.0.0.1", port=cutting_proxy.port)
    jobs = KeyedJobs(Store(url.render_as_string(hide_password=False)), kind)
    yield jobs
    jobs.close()
    jobs.store.dispose()
