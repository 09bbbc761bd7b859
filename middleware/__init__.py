"""A deployment kit that makes Dramatiq on RabbitMQ safe to run: the public names, in life-cycle order."""

# Declare: queues and the broker that holds them
from .transport.queues import Queue
from .transport.quorum import QuorumBroker
from .transport.inline import InlineBroker
from .transport.broker import JobBroker, QueueCounts

# Send: what is certain when it fails
from .errors import EnqueueError, EnqueueUnknown, NotEnqueued, PayloadError, UnknownQueue

# Run: how long, until when
from .failures.time_limits import TimeLimits
from .failures.shutdown import Shutdown

# Take effect once
# from .store.database import Store
# from .effects.ledger import Ledger
# from .effects.session import current_async_session, current_session

# Fail: what an actor says, what the kit decides
from .errors import BusinessReject, Invalid, KeyConflict, Snooze
from .failures.failures import Failures
from .failures.kinds import Kind

# Misuse
from .errors import ConfigurationError, DeclarationError, JobsError, LedgerViolation, TopologyError
