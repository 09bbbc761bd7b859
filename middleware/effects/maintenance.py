"""What has to be done for all processes by one of them? Any number may do it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ..logs import first_line, get_logger
from ..store import Store
from ..transport.enqueueing import EnqueueingBroker
from .ledger import Ledger
from .outbox.owner import new_owner
from .outbox.relay import Relay
from .presence import SAY_EVERY, say_gone, say_present
from .pruning_duty import Duty

log = get_logger(__name__)


class Maintenance:
    """Relays the outbox, and says so in the database.

    Parameters:
        store: the database.
        broker: publishes; its middleware has a `Ledger`.
        duties: what else is to be done, each on a thread of its own. Defaults to nothing.
    """

    def __init__(self, store: Store, broker: EnqueueingBroker, duties: Sequence[Duty] = ()) -> None:
        self._store = store
        self._duties = duties
        self._relay = Relay(store, broker, Ledger.of(broker).forgotten_after)
        self._name = new_owner("maintenance")
        self._has_complained = False

    def run(self, stop: threading.Event) -> None:
        """Work until the event is set; a database or broker that is away is waited for."""
        self._relay.start()
        threads = [threading.Thread(target=duty, args=(stop,), name="jobs-duty") for duty in self._duties]
        for thread in threads:
            thread.start()
        try:
            self._say(say_present)
            while not stop.wait(SAY_EVERY.total_seconds()):
                self._say(say_present)
        finally:
            self._relay.stop()
            for thread in threads:
                thread.join()
            self._say(say_gone)

    def _say(self, what: Callable[[Connection, str], None]) -> None:
        try:
            with self._store.stateless() as connection:
                what(connection, self._name)
        except (SQLAlchemyError, TimeoutError) as error:
            if not self._has_complained:
                log.warning("maintenance.database_away", reason=first_line(error))
            self._has_complained = True
        else:
            self._has_complained = False
