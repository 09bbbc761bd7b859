"""Making a duplicate harmless: the effect of a job takes place once."""

from .effect import effect as effect
from .ledger import Ledger as Ledger
from .session import current_async_session as current_async_session
from .session import current_session as current_session
