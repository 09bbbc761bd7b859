"""Making a duplicate harmless: the effect of a job takes place once."""

from .attempt import current_key as current_key
from .attempt import current_key_async as current_key_async
from .entering import effect as effect
from .ledger import Ledger as Ledger
from .reconciling import Reconciled as Reconciled
from .session import current_async_session as current_async_session
from .session import current_session as current_session
