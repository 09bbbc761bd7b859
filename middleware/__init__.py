"""A deployment kit that makes Dramatiq on RabbitMQ safe to run: the public names, in life-cycle order."""

from .effects.attempt import current_key, current_key_async
from .effects.enqueue import enqueue, enqueue_all, enqueue_all_async, enqueue_async
from .effects.entering import effect
from .effects.ledger import Ledger
from .effects.outbox import publish_now
from .effects.reconciling import Reconciled
from .effects.retention import Retention
from .effects.session import current_async_session, current_session
from .errors import (
    BusinessReject,
    ConfigurationError,
    DeclarationError,
    EnqueueError,
    EnqueueUnknown,
    Invalid,
    JobsError,
    KeyConflict,
    LedgerViolation,
    NotDone,
    NotEnqueued,
    OutboxFull,
    PayloadError,
    Snooze,
    TopologyError,
    UnknownOutcome,
    UnknownQueue,
    Unprovable,
)
from .failures.event_loop import AsyncIO
from .failures.failures import Failures
from .failures.kinds import Kind
from .failures.shutdown import Shutdown
from .failures.time_limits import TimeLimits
from .store.database import Store
from .transport.broker import JobBroker
from .transport.coroutines import enqueue_many_async, send_async, send_with_options_async
from .transport.counts import QueueCounts
from .transport.inline import InlineBroker
from .transport.memory import DeadLetter
from .transport.queues import Queue
from .transport.quorum import QuorumBroker

__all__ = [  # noqa: RUF022  # in the order of a job's life
    # Declare: queues and the broker that holds them
    "Queue",
    "QuorumBroker",
    "InlineBroker",
    "JobBroker",
    "QueueCounts",
    "DeadLetter",
    # Enqueue in a transaction
    "enqueue",
    "enqueue_all",
    "enqueue_async",
    "enqueue_all_async",
    "publish_now",
    # Send from a coroutine; what is certain when a send fails
    "send_async",
    "send_with_options_async",
    "enqueue_many_async",
    "EnqueueError",
    "NotEnqueued",
    "EnqueueUnknown",
    "PayloadError",
    "OutboxFull",
    "UnknownQueue",
    # Run: how long, until when
    "TimeLimits",
    "AsyncIO",
    "Shutdown",
    # Take effect once
    "Store",
    "Ledger",
    "Retention",
    "current_session",
    "current_async_session",
    "effect",
    "current_key",
    "current_key_async",
    "Reconciled",
    # Fail: what an actor says, what the kit decides
    "Invalid",
    "BusinessReject",
    "KeyConflict",
    "NotDone",
    "UnknownOutcome",
    "Unprovable",
    "Snooze",
    "Failures",
    "Kind",
    # Misuse
    "JobsError",
    "ConfigurationError",
    "DeclarationError",
    "LedgerViolation",
    "TopologyError",
]
