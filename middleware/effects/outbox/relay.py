"""Who publishes what was committed, when the process that committed it did not? The maintenance's relay.

It looks for claims that are over; nothing has to wake it, so that no connection has to stay open to listen.
Any number of relays work side by side: each claims what no other has locked.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

from ...store import Store
from ...transport.enqueueing import EnqueueingBroker
from .. import submissions
from . import rows
from .forwarder import Forwarder
from .owner import new_owner

_POLL_SECONDS: Final = 1.0
_SWEEP_SECONDS: Final = 15.0
_BATCH: Final = 500
FORGOTTEN_AFTER: Final = timedelta(days=1)


class Relay(Forwarder):
    """Publishes rows whose claim is over, and frees each `job_id` that a crash left.

    Parameters:
        store: where the outbox is.
        broker: publishes.
        forgotten_after: how long nothing may be heard of a job before its `job_id` is free. Defaults to 1
        day.
    """

    def __init__(
        self, store: Store, broker: EnqueueingBroker, forgotten_after: timedelta = FORGOTTEN_AFTER
    ) -> None:
        super().__init__("jobs-relay", store, broker, new_owner("relay"))
        self._forgotten_after = forgotten_after
        self._next_look = 0.0
        self._next_sweep = 0.0

    def feed(self) -> float:
        """Claim a batch; the next one at once if there was more than one, else after a second."""
        left = self._next_look - time.monotonic()
        if left > 0:
            return left
        with self.store.stateless() as connection:
            found = rows.claim_left_over(connection, self.owner, most=_BATCH, without=self.forwarding.full())
        self.forwarding.begin(found)
        self._sweep()
        pause = 0.0 if len(found) == _BATCH else _POLL_SECONDS
        self._next_look = time.monotonic() + pause
        return pause

    def _sweep(self) -> None:
        if time.monotonic() >= self._next_sweep:
            with self.store.stateless() as connection:
                submissions.sweep(connection, self._forgotten_after)
            self._next_sweep = time.monotonic() + _SWEEP_SECONDS
