"""What did the code under test send, and what does it do when it is run? Jobs that wait until a test asks."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Final

import dramatiq
from dramatiq import Actor, Message

from ..effects.arguments import Parameters
from ..errors import ConfigurationError
from ..transport.broker import JobBroker
from ..transport.outcome import Dead, Retry, Snoozed
from ..transport.publication import READY, Publication, Result, Ticket
from ..transport.wrapping import function_of
from .life import Life
from .probe import Probe
from .records import Records
from .watching import Watch
from .workers import ledger_of, running_worker

_POLL_SECONDS: Final = 0.02


class HeldJobs:
    """Keeps all that is sent while the `with` block runs: nothing of it runs before the test says so.

    Parameters:
        broker: of either kind. Defaults to Dramatiq's global one.
        timeout: how long jobs may take, all together. Defaults to 20 seconds.

    Attributes:
        probe: fails an actor that does while its transaction is open what it must not.

    Raises:
        ConfigurationError: the broker is not one of the kit's.
    """

    def __init__(
        self, broker: dramatiq.Broker | None = None, *, timeout: timedelta = timedelta(seconds=20)
    ) -> None:
        found = dramatiq.get_broker() if broker is None else broker
        if not isinstance(found, JobBroker):
            raise ConfigurationError(
                f"expected the broker to be one of the kit's, got: {type(found).__name__}; import the "
                "application before, which sets it"
            )
        self.probe = Probe()
        self._broker = found
        self._seconds = timeout.total_seconds()
        self._lock = threading.Lock()
        self._held: list[Publication] = []
        self._runs: Callable[[Publication], bool] = lambda publication: False
        self._watch = Watch(found, takes=self._takes)

    def __enter__(self) -> HeldJobs:
        """Begin to hold what is sent."""
        ledger = ledger_of(self._broker)
        self._records = Records(None if ledger is None else ledger._store)
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what was never run."""
        self._watch.__exit__(kind, error, trace)
        self._records.close()

    # --- what was sent ---

    def enqueued(self, actor: Actor[..., Any] | None = None) -> list[Message[Any]]:
        """Return the messages that wait, oldest first; sends in a transaction count once it is committed.

        Parameters:
            actor: whose. Defaults to None: all.
        """
        self._wait_for_outbox()
        with self._lock:
            messages = [Message.decode(publication.body) for publication in self._held]
        return [each for each in messages if actor is None or each.actor_name == actor.actor_name]

    def assert_enqueued(self, actor: Actor[..., Any], /, *args: Any, **kwargs: Any) -> Message[Any]:
        """Assert that a job waits, once, and return its message.

        Parameters:
            actor: whose job.
            args, kwargs: exactly its arguments; those with a default may be left out on either side.

        Raises:
            AssertionError: it does not, or more than one does; the text lists all that wait.
        """
        wanted = _arguments(actor, args, kwargs)
        found = [each for each in self.enqueued(actor) if _arguments(actor, each.args, each.kwargs) == wanted]
        if len(found) != 1:
            waiting = ", ".join(map(str, self.enqueued())) or "nothing"
            call = str(actor.message(*args, **kwargs))
            raise AssertionError(
                f"expected {call} to wait once, got: {len(found)} of it; what waits: {waiting}"
            )
        return found[0]

    # --- running it ---

    def drain(self, *, fail_fast: bool = True) -> Counter[str]:
        """Run all that waits, what these jobs send, and their retries, without waiting for delays.

        Parameters:
            fail_fast: whether to raise what the first dead letter died of. Defaults to True.

        Returns:
            How many jobs ended in which way: `completed`, `duplicate`, `discarded`, `dead`.

        Raises:
            AssertionError: not all have ended in time.
            LedgerViolation: an actor did what it must not while its transaction is open.
            BaseException: see `fail_fast`.
        """
        with self._running(lambda publication: True) as lives:
            self._release()
        ended = [life for life in lives() if _is_end(life)]
        died = [life for life in ended if isinstance(life.outcome, Dead)]
        if fail_fast and died and died[0].error is not None:
            raise died[0].error
        return Counter(life.outcome.name for life in ended if life.outcome is not None)

    def perform(self, actor: Actor[..., Any], /, *args: Any, **kwargs: Any) -> str:
        """Run one job, once, as a worker does, with all the middleware; what it sends waits.

        Returns:
            How it ended: `completed`, `duplicate`, `discarded`, or `snoozed`, which then does not run again.

        Raises:
            BaseException: what the actor raised; it is not retried.
            AssertionError: it has not ended in time.
            LedgerViolation: the actor did what it must not while its transaction is open.
        """
        message = actor.message_with_options(args=args, kwargs=kwargs, max_retries=0)
        is_first = iter([True])

        def runs(publication: Publication) -> bool:
            return publication.message_id == message.message_id and next(is_first, False)

        with self._running(runs) as lives:
            self._broker.enqueue(message)
        self._forget(message)
        (life,) = lives()
        if life.error is not None and not isinstance(life.outcome, Snoozed):
            raise life.error
        assert life.outcome is not None
        return life.outcome.name

    @contextmanager
    def _running(self, runs: Callable[[Publication], bool]) -> Iterator[Callable[[], list[Life]]]:
        """Let some publications through to the broker, until all of these jobs have ended."""
        before = len(self._watch.lives)
        with running_worker(self._broker), self.probe.watching(self._broker):
            self._runs = runs
            try:
                yield lambda: self._watch.lives[before:]
                self._wait_until_ended()
            finally:
                self._runs = lambda publication: False
        self.probe.check()

    def _release(self) -> None:
        with self._lock:
            held, self._held = self._held, []
        tickets = [Ticket(publication, self._published) for publication in held]
        self._broker.submit(tickets)
        self._watch.wait(lambda: all(ticket.result is not None for ticket in tickets), self._seconds)
        refused = [ticket for ticket in tickets if ticket.result is not Result.CONFIRMED]
        if refused:
            raise AssertionError(
                f"expected the broker to take what waits, got: {refused[0].reason or 'nothing'}"
            )

    def _published(self, ticket: Ticket) -> None:
        with self._watch.changed:
            self._watch.changed.notify_all()

    def _takes(self, ticket: Ticket) -> bool:
        publication = ticket.publication
        if self._runs(publication):
            ticket.publication = publication._replace(place=READY, ticks=0)
            return True
        with self._lock:
            self._held.append(publication)
        return False

    def _forget(self, message: Message[Any]) -> None:
        with self._lock:
            self._held = [each for each in self._held if each.message_id != message.message_id]

    # --- waiting ---

    def _wait_until_ended(self) -> None:
        self._wait_for_outbox()
        if self._watch.wait_until_settled(self._seconds):
            self._wait_for_outbox()
            if self._watch.wait_until_settled(self._seconds):
                return
        story = ", ".join(str(life.delivery) for life in self._watch.lives if not life.has_ended)
        raise AssertionError(
            f"expected all jobs to end within {self._seconds:g} s, got: {story or 'retries'}"
        )

    def _wait_for_outbox(self) -> None:
        deadline = time.monotonic() + self._seconds
        while not self._records.is_outbox_empty:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"expected the outbox to be empty within {self._seconds:g} s, got: rows in job_outbox; "
                    "the log says why they are not published, or an earlier test has left them"
                )
            threading.Event().wait(_POLL_SECONDS)


def _arguments(actor: Actor[..., Any], args: Any, kwargs: Any) -> Any:
    """Return a job's arguments by name, as they are after the way through the broker."""
    bound = Parameters(function_of(actor)).bind(args, kwargs)
    return json.loads(json.dumps(dict(bound)))


def _is_end(life: Life) -> bool:
    return life.is_acknowledged and not isinstance(life.outcome, Retry | Snoozed)
