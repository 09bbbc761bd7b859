"""What happens around every job, and in which order?"""

from __future__ import annotations

from dramatiq.middleware import AgeLimit, Callbacks, CurrentMessage, Middleware, Pipelines

from middleware import (
    AsyncIO,
    Failures,
    InlineBroker,
    Ledger,
    QuorumBroker,
    Retention,
    Shutdown,
    Store,
    TimeLimits,
)
from middleware.configuration import INLINE
from middleware.transport.broker import JobBroker

from .queues import QUEUES
from .settings import Settings


def build_middleware(settings: Settings, store: Store) -> list[Middleware]:
    """Return THE middleware list.

    What happens before a job runs top to bottom, what happens after it bottom to top; of the two that wrap
    the actor's function, the first is the inner one.
    """
    return [
        AgeLimit(),  # first: a job past its max_age is skipped before anything is spent on it
        CurrentMessage(),  # everything below, and the actor, may ask which message this is
        TimeLimits(),  # inside the ledger: an interrupt ends the actor, never a commit
        Ledger(  # around the actor: its commit can fail the job
            store,
            wait=settings.ledger_wait,
            lease=settings.effect_lease,
            grace=settings.shutdown_grace,
            outbox_limit=settings.outbox_limit,
            retention=Retention(
                ledger=settings.ledger_retention, replay=settings.replay_window, every=settings.prune_every
            ),
            forgotten_after=settings.submission_lifetime,
        ),
        Callbacks(),  # on_success and on_failure; what follows a keyed job is written in its commit
        Pipelines(),  # the next step of a pipeline
        AsyncIO(),  # the event loop of async actors
        Failures(  # below all that hear how a job ended: its `after` comes first and decides the outcome
            max_retries=settings.max_retries,
            min_backoff=settings.min_backoff,
            max_backoff=settings.max_backoff,
        ),
        Shutdown(grace=settings.shutdown_grace),  # interrupts what still runs after the grace
    ]


def build_broker(settings: Settings, store: Store) -> JobBroker:
    """Return the broker that JOBS_BROKER_URL asks for; it connects on first use."""
    middleware = build_middleware(settings, store)
    if settings.broker_url == INLINE:
        return InlineBroker(
            queues=QUEUES,
            middleware=middleware,
            threads=settings.inline_threads,
            max_delay=settings.max_delay,
            payload_limit=settings.payload_limit,
            grace=settings.shutdown_grace,
        )
    return QuorumBroker(
        settings.broker_url,
        queues=QUEUES,
        middleware=middleware,
        management_url=settings.management_url,
        publish_timeout=settings.publish_timeout,
        max_delay=settings.max_delay,
        payload_limit=settings.payload_limit,
        consumer_timeout=settings.broker_consumer_timeout,
        grace=settings.shutdown_grace,
    )
