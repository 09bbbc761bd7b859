"""Who tells the database that this process's attempts are under way? One thread, while there are any."""

from __future__ import annotations

import os
import threading
from typing import Final

from ..logs import get_logger
from .intents import Intents, Token

log = get_logger(__name__)

_RENEWALS: Final = 3
"""How often a lease is renewed within its length: one or two renewals may fail."""


class Leases:
    """The attempts that this process holds.

    Parameters:
        intents: where they are noted.
    """

    def __init__(self, intents: Intents) -> None:
        self.intents = intents
        self._pause_seconds = intents.lease.total_seconds() / _RENEWALS
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._held: set[Token] = set()
        self._changed = threading.Condition()
        self._is_running = False

    def hold(self, token: Token) -> None:
        """Renew an attempt's lease from now on."""
        if self._pid != os.getpid():  # a forked child: the attempts and the thread are its parent's
            self._forget()
        with self._changed:
            self._held.add(token)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._renew, name="jobs-leases", daemon=True).start()

    def drop(self, token: Token) -> None:
        """Leave an attempt's lease alone."""
        with self._changed:
            self._held.discard(token)
            self._changed.notify()

    def _renew(self) -> None:
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: not self._held, self._pause_seconds):
                    self._is_running = False
                    return
                held = sorted(self._held)
            try:
                self.intents.renew(held)
            except Exception as error:
                log.warning("effects.leases_not_renewed", attempts=len(held), error=repr(error))
