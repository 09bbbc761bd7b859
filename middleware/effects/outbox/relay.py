"""Who publishes what was committed, when the process that committed it did not? The maintenance's relay.

It looks for claims that are over; nothing has to wake it, so that no connection has to stay open to listen.
Any number of relays work side by side: each claims what no other has locked.
"""

from __future__ import annotations

import time
from typing import Final

from ...store import Store
from ...transport.enqueueing import EnqueueingBroker
from . import rows
from .forwarder import Forwarder
from .owner import new_owner

_POLL_SECONDS: Final = 1.0
_BATCH: Final = 500


class Relay(Forwarder):
    """Publishes rows whose claim is over.

    Parameters:
        store: where the outbox is.
        broker: publishes.
    """

    def __init__(self, store: Store, broker: EnqueueingBroker) -> None:
        super().__init__("jobs-relay", store, broker, new_owner("relay"))
        self._next_look = 0.0

    def feed(self) -> float:
        """Claim a batch; the next one at once if there was more than one, else after a second."""
        left = self._next_look - time.monotonic()
        if left > 0:
            return left
        with self.store.stateless() as connection:
            found = rows.claim_left_over(connection, self.owner, most=_BATCH, without=self.forwarding.full())
        self.forwarding.begin(found)
        pause = 0.0 if len(found) == _BATCH else _POLL_SECONDS
        self._next_look = time.monotonic() + pause
        return pause
