"""Which thread takes rows of the outbox to the broker? One that waits for news and does one at a time."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from sqlalchemy.exc import SQLAlchemyError

from ...logs import get_logger
from ...store import Store
from ...transport.enqueueing import EnqueueingBroker
from .forwarding import RENEW_SECONDS, Forwarding

log = get_logger(__name__)

_AWAY_SECONDS: Final = 1.0
"""Between two tries while the database does not answer."""
_LONGEST_SECONDS: Final = 3600.0
_LAST_CONFIRMS_SECONDS: Final = 2.0
News: TypeAlias = Callable[[], None]


class Forwarder(ABC):
    """A thread that publishes rows; where they come from is up to its kinds.

    Parameters:
        name: of the thread.
        store: where the outbox is.
        broker: publishes.
        owner: whose claims these are.
        removed: called with the number of rows that were confirmed and removed..
    """

    def __init__(
        self,
        name: str,
        store: Store,
        broker: EnqueueingBroker,
        owner: str,
        removed: Callable[[int], None] = lambda _number: None,
    ) -> None:
        self.store = store
        self.owner = owner
        self._name = name
        self._news: SimpleQueue[News] = SimpleQueue()
        self.forwarding = Forwarding(
            store,
            broker,
            owner,
            tell=lambda row_id: self._news.put(partial(self.forwarding.ended, row_id)),
            removed=removed,
        )
        self._is_stopping = False
        self._settling: list[threading.Event] = []
        self._has_complained = False
        self._thread: threading.Thread | None = None

    @abstractmethod
    def feed(self) -> float:
        """Find rows and begin to publish them; return after how many seconds to call it again.

        Raises:
            sqlalchemy.exc.SQLAlchemyError, TimeoutError: the database does not answer; it is called again.
        """

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def tell(self, news: News) -> None:
        """Have the thread call something, soon."""
        self._news.put(news)

    @property
    def is_idle(self) -> bool:
        """Whether nothing that it was told of is left to be done; asked by its own thread."""
        return self.forwarding.is_idle

    def settle(self, seconds: float) -> bool:
        """Wait until all that it was told of is published; return whether it was, within so many seconds."""
        settled = threading.Event()
        self.tell(lambda: self._settling.append(settled))
        return settled.wait(seconds)

    def stop(self) -> None:
        """End the thread; what is not written yet is left to others, what is written gets 2 s to confirm."""
        self._is_stopping = True
        self.tell(lambda: None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        seconds = 0.0
        while not self._is_stopping:
            self._listen(seconds)
            seconds = self._step()
            self._tell_settled()
        self._finish()

    def _tell_settled(self) -> None:
        if self._settling and self.is_idle:
            for settled in self._settling:
                settled.set()
            self._settling.clear()

    def _step(self) -> float:
        try:
            self.forwarding.note()
            seconds = self.feed()
        except (SQLAlchemyError, TimeoutError) as error:
            self._complain(error)
            return _AWAY_SECONDS
        except Exception:
            log.critical("outbox.failed", thread=self._name, exc_info=True)
            return _AWAY_SECONDS
        self._has_complained = False
        return seconds if self.forwarding.is_idle else min(seconds, RENEW_SECONDS)

    def _listen(self, seconds: float) -> None:
        """Wait for news, and take all that is there."""
        with suppress(Empty):
            self._news.get(timeout=min(seconds, _LONGEST_SECONDS))()
            while True:
                self._news.get_nowait()()

    def _finish(self) -> None:
        try:
            self.forwarding.give_up()
            for _ in range(round(_LAST_CONFIRMS_SECONDS / 0.1)):
                self.forwarding.note()
                if self.forwarding.is_idle:
                    return
                self._listen(0.1)
        except (SQLAlchemyError, TimeoutError) as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        if not self._has_complained:
            log.warning("outbox.database_away", thread=self._name, reason=str(error).splitlines()[0])
        self._has_complained = True
