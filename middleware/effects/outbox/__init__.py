"""Committing a job together with what it follows from, in one transaction; publishing it after that."""

from .joining import publish_now as publish_now
from .outbox import Outbox as Outbox
from .relay import Relay as Relay
