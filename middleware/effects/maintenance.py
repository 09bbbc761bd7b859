"""What has to be done for all processes by one of them? The relay; any number may do it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ..logs import get_logger
from ..store import Store
from ..transport.enqueueing import EnqueueingBroker
from .outbox.owner import new_owner
from .outbox.relay import Relay
from .presence import SAY_EVERY, say_gone, say_present

log = get_logger(__name__)


class Maintenance:
    """Relays the outbox, and says so in the database.

    Parameters:
        store: the database.
        broker: publishes.
    """

    def __init__(self, store: Store, broker: EnqueueingBroker) -> None:
        self._store = store
        self._relay = Relay(store, broker)
        self._name = new_owner("maintenance")
        self._has_complained = False

    def run(self, stop: threading.Event) -> None:
        """Work until the event is set; a database or broker that is away is waited for."""
        self._relay.start()
        try:
            self._say(say_present)
            while not stop.wait(SAY_EVERY.total_seconds()):
                self._say(say_present)
        finally:
            self._relay.stop()
            self._say(say_gone)

    def _say(self, what: Callable[[Connection, str], None]) -> None:
        try:
            with self._store.stateless() as connection:
                what(connection, self._name)
        except (SQLAlchemyError, TimeoutError) as error:
            if not self._has_complained:
                log.warning("maintenance.database_away", reason=str(error).splitlines()[0])
            self._has_complained = True
        else:
            self._has_complained = False
