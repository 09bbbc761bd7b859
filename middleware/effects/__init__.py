"""Making a duplicate harmless: the effect of a job takes place once."""

from .attempt import current_key as current_key
from .attempt import current_key_async as current_key_async
from .enqueue import enqueue as enqueue
from .enqueue import enqueue_all as enqueue_all
from .enqueue import enqueue_all_async as enqueue_all_async
from .enqueue import enqueue_async as enqueue_async
from .entering import effect as effect
from .ledger import Ledger as Ledger
from .outbox import publish_now as publish_now
from .reconciling import Reconciled as Reconciled
from .retention import Retention as Retention
from .session import current_async_session as current_async_session
from .session import current_session as current_session
