"""The application: `dramatiq jobs` loads this, and so does whoever sends a job.

Importing it reads the settings, builds the broker and declares the actors; nothing connects yet. A module
with more actors does `import jobs` first and declares them on the same broker.
"""

from __future__ import annotations

import dramatiq

from middleware import Store
from middleware.configuration import refusing_start

from .broker import build_broker
from .settings import get_settings

with refusing_start():
    store = Store(get_settings().database_url, pool_size=get_settings().database_pool_size)
    dramatiq.set_broker(build_broker(get_settings(), store))

# The actors bind to the broker that is set when they are declared.
from .chats.summaries import summarize_chat
from .credit import charge_credit
from .mail.emails import send_email
from .resources.indexing import index_resource
from .sample import seed

__all__ = ["charge_credit", "index_resource", "seed", "send_email", "store", "summarize_chat"]
