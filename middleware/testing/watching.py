"""Which jobs does a broker still hold, and how did each delivery end?"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from dramatiq import Broker
from dramatiq.middleware import Middleware, SkipMessage

from ..transport.broker import JobBroker
from ..transport.delivery import Delivery, current_delivery
from ..transport.inline import InlineBroker
from ..transport.publication import DEAD, Publication, Result, Ticket
from ..transport.sending import Countdown, Outbound
from .life import Life, Point, WatchedLink

PUBLISH: Final = "the publish of what follows it"
CONFIRM: Final = "the confirm of what follows it"


class Watch(Middleware):
    """Watches all jobs of a broker while the `with` block runs; stands first in the broker's list.

    Parameters:
        broker: of either kind.
        reach: told of each point that a delivery reaches. Defaults to nobody.
        only: the id of the one job that is watched. What it sends is left alone, or thrown away where nobody
            else can have sent it. Defaults to None: all jobs.
        takes: whether a publication goes to the broker. Called for each but dead letters; what is not
            taken is confirmed all the same. Defaults to all.

    Attributes:
        stored: what the broker has stored, dead letters apart.
        lives: the deliveries, in the order in which they began.
    """

    def __init__(
        self,
        broker: JobBroker,
        reach: Callable[[Life, Point], Any] | None = None,
        *,
        only: str | None = None,
        takes: Callable[[Ticket], bool] = lambda ticket: True,
    ) -> None:
        self.broker = broker
        self.changed = threading.Condition()
        self.stored: list[Publication] = []
        self.lives: list[Life] = []
        self._reach = reach or (lambda life, point: None)
        self._only = only
        self.takes = takes
        self._open: Counter[str] = Counter()
        self._settling = threading.local()

    def __enter__(self) -> Watch:
        """Begin to watch.

        Raises:
            RuntimeError: somebody watches already.
        """
        settlement: Any = self.broker.settlement
        if isinstance(settlement._outbound, _WatchedOutbound):
            raise RuntimeError(
                "expected one of crash_points and held_jobs at a time, got: one within the other; take them "
                "in tests of their own"
            )
        self.broker.middleware.insert(0, self)
        self.broker._hooks.forget()
        self._settlement, self._outbound = settlement, settlement._outbound
        watched: Any = _WatchedOutbound(self._outbound, self)
        settlement._outbound = self.broker._outbound = watched
        settlement.settle = self._settle
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the broker as it was."""
        del self._settlement.settle
        self._settlement._outbound = self.broker._outbound = self._outbound
        with suppress(ValueError):
            self.broker.middleware.remove(self)
        self.broker._hooks.forget()

    # --- hooks ---

    def before_process_message(self, broker: Broker, message: Any) -> None:
        """Begin a life.

        Raises:
            SkipMessage: another job than the one that is watched has sent it.
        """
        assert isinstance(message, Delivery)
        if self._only not in (None, message.message_id):
            if isinstance(self.broker, InlineBroker):
                raise SkipMessage("what the job under test sends is not run")
            return
        with self.changed:
            number = sum(life.delivery.message_id == message.message_id for life in self.lives)
            life = Life(message, number, self._reach, self.changed)
            message.link = WatchedLink(life, self._removed)
            self.lives.append(life)
            self.changed.notify_all()

    def after_process_message(
        self, broker: Broker, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        """Note how a delivery ended; called after the middleware that decides."""
        self._ended(message, exception)

    def after_skip_message(self, broker: Broker, message: Any) -> None:
        """Note that a job was kept from running."""
        self._ended(message, message.exception)

    def _ended(self, delivery: Any, error: BaseException | None) -> None:
        life = self.life_of(delivery)
        if life is None:
            return
        with self.changed:
            life.outcome, life.has_ended = delivery.outcome, True
            life.error = None if life.is_dead else error
            self.changed.notify_all()

    # --- settlement ---

    def _settle(self, delivery: Delivery) -> None:
        self._settling.life = self.life_of(delivery)
        try:
            type(self._settlement).settle(self._settlement, delivery)
        finally:
            self._settling.life = None

    @property
    def settling(self) -> Life | None:
        """The life that this thread settles."""
        found: Life | None = getattr(self._settling, "life", None)
        return found

    def store(self, publication: Publication) -> None:
        """Count a job that the broker has stored, or a copy of one."""
        if publication.place == DEAD or self._only not in (None, publication.message_id):
            return
        with self.changed:
            self.stored.append(publication)
            self._open[publication.message_id] += 1
            self.changed.notify_all()

    def _removed(self, life: Life) -> None:
        with self.changed:
            self._open[life.delivery.message_id] -= 1
            self.changed.notify_all()

    # --- asked by tests ---

    def life_of(self, delivery: object) -> Life | None:
        """Return the life of a delivery that began while the block ran."""
        return next((life for life in reversed(self.lives) if life.delivery is delivery), None)

    def current_life(self) -> Life | None:
        """Return the life of the delivery that this thread or coroutine runs."""
        delivery = current_delivery()
        return None if delivery is None else self.life_of(delivery)

    @property
    def is_settled(self) -> bool:
        """Whether every job that was sent has ended, and no thread is at one; call it with `changed` held."""
        return not any(self._open.values()) and all(life.has_ended for life in self.lives)

    def wait(self, fact: Callable[[], object], seconds: float) -> bool:
        """Return whether something became true of what is watched within so many seconds."""
        with self.changed:
            return bool(self.changed.wait_for(fact, seconds))

    def wait_until_settled(self, seconds: float) -> bool:
        """Return whether every job ended in time; without a server, what is delayed is due at once."""
        deadline = time.monotonic() + seconds
        while True:
            if isinstance(self.broker, InlineBroker):
                self.broker._memory.release_delayed()
            if self.wait(lambda: self.is_settled, 0.02):
                return True
            if time.monotonic() > deadline:
                return False


class _WatchedOutbound:
    """The way to the broker, for those who send and for settlement."""

    def __init__(self, outbound: Outbound, watch: Watch) -> None:
        self._outbound = outbound
        self._watch = watch

    def submit(self, tickets: Sequence[Ticket]) -> None:
        life = self._watch.settling
        if life is not None and not life.survives("before", PUBLISH):
            for ticket in tickets:
                ticket.end(Result.UNKNOWN, "the worker is dead")
            return
        taken = self._taken(tickets, life)
        if taken:
            self._outbound.submit(taken)

    def drive(self, tickets: Sequence[Ticket], countdown: Countdown, patience: float) -> bool:
        taken = self._taken(tickets, None)
        return not taken or self._outbound.drive(taken, countdown, patience)

    def _taken(self, tickets: Sequence[Ticket], life: Life | None) -> list[Ticket]:
        taken = []
        for ticket in tickets:
            if isinstance(ticket.done, _Counted):  # a publish that is tried in two ways is one
                taken.append(ticket)
            elif ticket.publication.place == DEAD or self._watch.takes(ticket):
                ticket.done = _Counted(self._watch, life, ticket.done)
                taken.append(ticket)
            elif ticket.claim():
                ticket.end(Result.CONFIRMED)
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbound, name)


class _Counted:
    """What is called when a publish ended."""

    def __init__(self, watch: Watch, life: Life | None, done: Callable[[Ticket], None]) -> None:
        self._watch = watch
        self._life = life
        self._done = done

    def __call__(self, ticket: Ticket) -> None:
        if ticket.result is Result.CONFIRMED:
            self._watch.store(ticket.publication)
            if self._life is not None:
                self._life.survives("before", CONFIRM)
        self._done(ticket)
