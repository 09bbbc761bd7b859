"""What the integration tests share beyond brokers: databases, and keyed actors that run on them."""

from __future__ import annotations

from ..fixtures_database import (  # noqa: F401  # fixtures: pytest finds them here
    database_url,
    postgresql,
    postgresql_template,
    postgresql_url,
    sqlite,
    sqlite_template,
    sqlite_url,
    store,
)
from .aged_jobs import effect  # noqa: F401  # as above
from .application import configure, model, sync_jobs  # noqa: F401  # as above
from .crash_jobs import hasty_jobs  # noqa: F401  # as above
from .keyed_jobs import jobs, kind, postgresql_jobs, sqlite_jobs  # noqa: F401  # as above
from .old_rows import small_pieces  # noqa: F401  # as above
from .outbox_jobs import make_outbox_jobs, outbox_jobs  # noqa: F401  # as above
from .proxied_jobs import cutting_proxy, proxied  # noqa: F401  # as above
from .sending_jobs import sending, sync_sending  # noqa: F401  # as above
