"""How do others declare the kit's queue? With plain AMQP, spelt here a second time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .deployment import Deployment

CRITICAL: Final[Mapping[str, Any]] = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": "jobs.dlx",
    "x-dead-letter-routing-key": "critical",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
    "x-delivery-limit": 1000,
}
"""The arguments of `critical`."""


def declare_critical(deployment: Deployment, arguments: Mapping[str, Any]) -> None:
    """Declare `critical`."""
    with deployment.rabbit.channel() as channel:
        channel.queue_declare("critical", durable=True, arguments=dict(arguments))


def replace_critical(deployment: Deployment, arguments: Mapping[str, Any]) -> None:
    """Delete `critical` and declare it anew in the same moment."""
    with deployment.rabbit.channel() as channel:
        channel.queue_delete("critical")
        channel.queue_declare("critical", durable=True, arguments=dict(arguments))
