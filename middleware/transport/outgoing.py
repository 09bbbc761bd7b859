"""What becomes of a message before it is published? Checked, then turned into a publication."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from dramatiq import Actor, Message
from dramatiq.common import q_name

from ..errors import NotEnqueued, PayloadError, UnknownQueue
from .declaring import known, parameters_of
from .decoding import Undecodable, check_options
from .ladder import ticks_for
from .payload import check_payload
from .publication import DELAYED, READY, Publication
from .queues import Queue

_MS: Final = timedelta(milliseconds=1)


class Outgoing:
    """The rules for what may be sent.

    Parameters:
        specs: the declared queues.
        max_delay: the longest delay.
        payload_limit: bytes of JSON that a job's arguments may take.
    """

    def __init__(self, specs: Mapping[str, Queue], max_delay: timedelta, payload_limit: int) -> None:
        self._specs = specs
        self._max_delay = max_delay
        self._payload_limit = payload_limit

    def check(self, message: Message[Any], actor: Actor[..., Any] | None) -> None:
        """Check a message's arguments and options.

        Parameters:
            message: about to be sent.
            actor: its actor, None if a publisher does not know the actor's code.

        Raises:
            PayloadError: an argument must not travel, or a worker would not take an option.
        """
        check_payload(
            message,
            limit=self._payload_limit,
            snapshots=actor.options.get("snapshots", ()) if actor else (),
            names=parameters_of(actor) if actor else (),
        )
        try:
            check_options(message.options)
        except Undecodable as error:
            raise PayloadError(f"actor {message.actor_name!r}: {error}") from None

    def publication(self, message: Message[Any], delay_ms: int | None) -> Publication:
        """Return a message's publication.

        Parameters:
            message: the job.
            delay_ms: milliseconds until it is due; None or 0 means now.

        Raises:
            NotEnqueued: no such queue, too long a delay, or no plain JSON.
        """
        queue = q_name(message.queue_name)
        if queue not in self._specs:
            raise UnknownQueue(
                f"message {message.message_id}: expected its queue to be one of {known(self._specs)}, "
                f"got: {message.queue_name!r}; declare a Queue of that name"
            )
        ticks = self._ticks(message, delay_ms)
        try:
            body = message.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadError(
                f"actor {message.actor_name!r}: expected the message to be plain JSON; {error}"
            ) from error
        return Publication(
            queue=queue,
            place=DELAYED if ticks else READY,
            body=body,
            message_id=message.message_id,
            actor=message.actor_name,
            timestamp=message.message_timestamp // 1000,
            ticks=ticks,
        )

    def _ticks(self, message: Message[Any], delay_ms: int | None) -> int:
        if not delay_ms:
            return 0
        longest = self._max_delay / _MS
        if not 0 < delay_ms <= longest:
            raise NotEnqueued(
                f"message {message.message_id}: expected delay to be between 0 and JOBS_MAX_DELAY "
                f"({longest:.0f} ms), got: {delay_ms} ms; raise the setting or schedule it later",
                refused=[message],
            )
        return ticks_for(delay_ms * _MS)
