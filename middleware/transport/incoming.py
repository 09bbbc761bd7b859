"""What becomes of a delivery before a worker thread sees it? Either a job, or a dead letter at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dramatiq import Message

from ..logs import get_logger
from .decoding import decode
from .delivery import Delivery, Link
from .evidence import Evidence
from .outcome import Dead
from .settlement import Settlement

log = get_logger(__name__)


def incoming(
    body: bytes,
    headers: Mapping[str, Any] | None,
    *,
    queue: str,
    message_id: str | None,
    link: Link,
    tag: int,
    settlement: Settlement,
    knows_actor: Callable[[str], bool],
    redelivered: bool = False,
) -> Delivery | None:
    """Turn what came off the wire into a delivery for a worker thread.

    A body that is no message, and a message for an actor that is not declared here, become dead letters,
    byte for byte; whoever has the publisher's turn does the waiting.

    Returns:
        The delivery, None if it became a dead letter.
    """
    evidence = Evidence.from_headers(headers)
    kind, reason = "", ""
    try:
        message = decode(body, queue)
    except Exception as error:  # Undecodable, or what nobody has thought of: it must not stop the consumer
        kind, reason = "undecodable", str(error) or repr(error)
        message = _stand_in(queue, message_id)
    if evidence.attempt > 1:
        message.options["retries"] = evidence.attempt - 1  # where Dramatiq's own middleware keeps it
    delivery = Delivery(message, link=link, tag=tag, body=body, evidence=evidence, redelivered=redelivered)
    if not kind and not knows_actor(message.actor_name):
        kind = "unknown_actor"
        reason = (
            f"no actor named {message.actor_name!r} is declared in this worker: every worker of a queue has "
            f"to load the modules of all its actors (dramatiq MODULE …), and is restarted for new ones"
        )
    if not kind:
        return delivery
    log.error("job.dead_lettered", kind=kind, queue=queue, message_id=delivery.message_id, reason=reason)
    delivery.outcome = Dead(kind, None, reason)
    settlement.settle(delivery)
    return None


def _stand_in(queue: str, message_id: str | None) -> Message[Any]:
    """Return a message that stands for a body that is none."""
    fields: dict[str, Any] = {"message_id": message_id} if isinstance(message_id, str) and message_id else {}
    return Message(queue_name=queue, actor_name="", args=(), kwargs={}, options={}, **fields)
