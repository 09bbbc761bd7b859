"""How does the effect of a job take place once, however often the job is delivered?

An actor with an `idempotency_key` runs in the transaction that inserts its key into the ledger: the effect
and the key are committed together or not at all. The ledger wraps the actor's function, because its commit
must be able to fail the job, and Dramatiq swallows what a hook raises.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Collection
from datetime import timedelta
from typing import Any, Final

from dramatiq import Actor, Broker, Message, Worker
from dramatiq.asyncio import get_event_loop_thread
from dramatiq.middleware import Middleware

from ..durations import format_duration
from ..errors import ConfigurationError, DeclarationError, NotEnqueued, PayloadError
from ..store import Store
from ..transport.broker import JobBroker
from ..transport.delivery import Delivery
from ..transport.wrapping import coroutine_of, wrap
from . import coroutines, external_coroutines, external_threads, late, threads
from .external import External
from .intents import Intents
from .joining import Joining, Messages, Publications
from .keyed import DATABASE, EXTERNAL, LATE, KeyedActor, is_keyed
from .leases import Leases
from .lifetimes import Lifetimes
from .outbox.outbox import LIMIT, Outbox
from .outbox.relay import FORGOTTEN_AFTER, Relay
from .postgresql import PostgreSQL
from .presence import warn_if_absent
from .pruning import Pruner
from .retention import Retention
from .sqlite import SQLite
from .startup import Refused, check_store
from .terms import Terms
from .watermark import Watermark

log = logging.getLogger(__name__)

_MODES: Final = {
    DATABASE: (threads.in_transaction, coroutines.in_transaction),
    LATE: (late.in_a_thread, late.on_the_loop),
}
"""The value of `effect` → what wraps a `def` and what an `async def`."""


class Ledger(Middleware):
    """Makes a duplicate harmless; stands after `TimeLimits` in the list, which wraps inside.

    Actor options:
        idempotency_key: a template such as `"credit:{task_id}:{message_id}"`, whose fields are parameters of
            the actor. Defaults to None: the actor runs as often as its job is delivered.
        effect: `"database"`, the default with a key: the actor runs in that transaction. `"late"`: it runs
            outside any, and its effect is the block `with effect() as session:` at its end. `"external"`: its
            effect is a call that no transaction takes back, noted before and confirmed after.
        reconcile: with `effect="external"`, asks the provider whether an earlier attempt took effect; called
            with the actor's arguments, returns a `Reconciled`. Defaults to None: a person is asked.
        on_unknown: with `effect="external"`, `"retry"` makes the call again without asking anybody.

    Parameters:
        store: the database of the ledger, and of the actors' effects.
        wait: how long a job waits for a running twin, or, on SQLite, for its turn to write, before it is put
            off. Defaults to 1 second.
        lease: how long an attempt at an external effect belongs to its worker without a sign of life.
            Defaults to 30 seconds.
        grace: how long a job may live past its time limit; then the database ends its transaction, in case
            the process is frozen. Defaults to 25 seconds.
        outbox_limit: jobs that may wait in the outbox; more are refused. Defaults to 100,000.
        retention: how long keys are remembered. Defaults to `Retention()`.
    """

    def __init__(
        self,
        store: Store,
        *,
        wait: timedelta = timedelta(seconds=1),
        lease: timedelta = timedelta(seconds=30),
        grace: timedelta = timedelta(seconds=25),
        outbox_limit: int = LIMIT,
        retention: Retention | None = None,
        forgotten_after: timedelta = FORGOTTEN_AFTER,
    ) -> None:
        if wait < timedelta(milliseconds=1):
            raise ValueError(f"expected wait to be at least 1 ms, got: {wait!r}")
        if lease < timedelta(seconds=1):
            raise ValueError(f"expected lease to be at least 1 s, got: {lease!r}")
        self._store = store
        self._wait = wait
        self._grace = grace
        self.retention = Retention() if retention is None else retention
        self._watermark = Watermark()
        self._leases = Leases(Intents(store, lease))
        self._database = SQLite() if store.is_sqlite else PostgreSQL()
        self._actors: dict[str, KeyedActor] = {}
        self._has_coroutines = False
        self._lock = threading.Lock()
        self._threads = 0
        self.outbox = Outbox(store, outbox_limit)
        self._joining = Joining(store, self.outbox)
        self._lifetimes = Lifetimes(store, self.outbox)
        self.forgotten_after = forgotten_after
        self._relay: Relay | None = None

    @staticmethod
    def of(broker: Broker) -> Ledger:
        """Return a broker's ledger.

        Raises:
            ConfigurationError: it has none.
        """
        for middleware in broker.middleware:
            if isinstance(middleware, Ledger):
                return middleware
        raise ConfigurationError(
            "expected the broker to be one of the kit's with a Ledger in its middleware list, got: "
            f"{type(broker).__name__} without one; set it with dramatiq.set_broker(…), or pass broker=…"
        )

    @property
    def actors(self) -> Collection[KeyedActor]:
        """The declared actors with a key."""
        return self._actors.values()

    @property
    def actor_options(self) -> set[str]:
        """See above."""
        return {"idempotency_key", "effect", "reconcile", "on_unknown"}

    def before_declare_actor(  # type: ignore[override]  # the kit's brokers call it
        self, broker: JobBroker, actor: Actor[..., Any]
    ) -> None:
        """Check the options and wrap the function.

        Raises:
            DeclarationError: an option is wrong, or another actor has the same template.
        """
        if not is_keyed(actor):
            return
        keyed = KeyedActor(actor)
        for other in self._actors.values():
            is_declared = other.name != keyed.name and other.name in broker.actors
            if is_declared and other.template.shape == keyed.template.shape:
                raise DeclarationError(
                    f"actor {keyed.name!r}: expected idempotency_key to differ from every other actor's, "
                    f"got: {keyed.template.text!r}, whose keys are those of actor {other.name!r} "
                    f"({other.template.text!r}); begin it with a word of its own"
                )
        self._actors[keyed.name] = keyed
        terms = Terms(
            keyed, broker, self._store, self._database, self._wait, self._grace, self.outbox, self._watermark
        )
        self._wrap(broker, actor, terms)
        coroutine = coroutine_of(actor)
        if coroutine is not None:
            self._has_coroutines = True
            actor.fn = coroutines.callable_on_the_loop(actor.fn, coroutine)

    def _wrap(self, broker: JobBroker, actor: Actor[..., Any], terms: Terms) -> None:
        if terms.keyed.effect == EXTERNAL:
            external = External(terms, actor, broker, self._leases)
            wrap(
                actor,
                sync=lambda function: external_threads.in_a_thread(external, function),
                coroutine=lambda function: external_coroutines.on_the_loop(external, function),
            )
            return
        in_a_thread, on_the_loop = _MODES[terms.keyed.effect]
        wrap(
            actor,
            sync=lambda function: in_a_thread(terms, function),
            coroutine=lambda function: on_the_loop(terms, function),
        )

    def check_message(self, broker: JobBroker, message: Message[Any]) -> None:
        """Check a message before it is published.

        Raises:
            PayloadError: its arguments do not fit the actor, or make no key.
            NotEnqueued: it asks for another job to follow where none can.
        """
        keyed = self._actors.get(message.actor_name)
        if keyed is None:
            return
        reason = keyed.refusal(message.options)
        if reason:
            raise NotEnqueued(reason, refused=[message])
        try:
            keyed.check(message.args, message.kwargs)
        except ValueError as error:
            raise PayloadError(str(error), refused=[message]) from None

    def take(
        self, broker: JobBroker, messages: Messages, publications: Publications, delay_ms: int | None
    ) -> Messages | None:
        """Take what is not to be published at once; see `Joining`."""
        return self._joining.take(broker, messages, publications, delay_ms)

    def take_async(
        self, broker: JobBroker, messages: Messages, publications: Publications, delay_ms: int | None
    ) -> Awaitable[Messages] | None:
        """Do as `take`, and return what to await."""
        return self._joining.take_async(broker, messages, publications, delay_ms)

    def begin_submitted(self, broker: JobBroker, delivery: Delivery) -> None:
        """Let a job with a `job_id` start, unless another submission takes its place; see `Lifetimes`.

        Raises:
            SkipMessage, Snooze: it does not start, or not now.
        """
        self._lifetimes.begin(delivery)

    def end_submitted(self, broker: JobBroker, delivery: Delivery) -> None:
        """Free the `job_id` of a job that has ended."""
        self._lifetimes.end(broker, delivery)

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Check the database, if the worker consumes a queue that has a keyed actor.

        Raises:
            SystemExit: the worker must not start; one CRITICAL line said why.
        """
        queues = worker.consumer_whitelist or broker.get_declared_queues()
        consumed = [keyed for keyed in self._actors.values() if keyed.queue in queues]
        if not consumed:
            return
        try:
            check_store(self._store, worker.worker_threads)
            assert isinstance(broker, JobBroker)
            self.retention.check(broker, self._declared(broker))
        except Refused as refused:
            log.critical("Refusing to start: %s", refused)
            raise SystemExit(refused.code) from None
        for keyed in consumed:
            problem = self.lease_problem(broker, keyed.name)
            if problem:
                log.warning("%s", problem)

    def _declared(self, broker: JobBroker) -> list[Actor[..., Any]]:
        """Return the actors that have a key."""
        return [broker.actors[name] for name in self._actors if name in broker.actors]

    def retention_problem(self, broker: JobBroker) -> str:
        """Return why keys are not remembered for long enough, empty if they are."""
        return self.retention.problem(broker, self._declared(broker))

    def pruner(self, broker: JobBroker, keep: timedelta | None = None) -> Pruner:
        """Return what forgets keys that no delivery can ask for any more; see `Retention.pruner`."""
        return self.retention.pruner(self._store, broker, self._declared(broker), self._grace, keep)

    def lease_problem(self, broker: JobBroker, actor_name: str) -> str:
        """Return what is wrong with the lease of an actor's attempts, empty if nothing is or it has none."""
        keyed = self._actors.get(actor_name)
        if keyed is None or keyed.effect != EXTERNAL:
            return ""
        longest, lease = broker.time_limit_of(actor_name, {}) + self._grace, self._leases.intents.lease
        if lease <= longest:
            return ""
        return (
            f"actor {actor_name!r}: expected the lease (JOBS_EFFECT_LEASE) to be at most its time limit + "
            f"grace ({format_duration(longest)}), got: {format_duration(lease)}; the key of a job whose "
            "worker died stays taken for longer than any job may run"
        )

    def after_worker_boot(  # type: ignore[override]  # the kit's brokers call it
        self, broker: JobBroker, worker: Worker
    ) -> None:
        """Without a server, relay in this process; else say so if no process does the maintenance."""
        if broker.is_inline:
            self._relay = Relay(self._store, broker, self.forgotten_after)
            self._relay.start()
        else:
            warn_if_absent(self._store)

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Stop publishing with the last worker of a process that has no server."""
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.stop()
            self.outbox.stop()

    def after_worker_thread_boot(self, broker: Broker, thread: threading.Thread) -> None:
        """Count the threads that may use the event loop's connections."""
        with self._lock:
            self._threads += 1

    def before_worker_thread_shutdown(self, broker: Broker, thread: threading.Thread) -> None:
        """Close the event loop's connections with the last thread: after that, the loop is gone."""
        with self._lock:
            self._threads -= 1
            is_last = self._threads == 0
        loop = get_event_loop_thread()
        if is_last and self._has_coroutines and loop is not None:
            loop.run_coroutine(self._store.dispose_async())
