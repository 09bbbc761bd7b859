"""What has to be published before a delivery with this outcome may be acknowledged?

A retry, a snooze and a dead letter are copies: the body byte for byte, what is known about the attempts in
the headers. Each copy has an id of its own, so that copies of one attempt can be told apart.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from dramatiq import Message

from .delivery import Delivery
from .evidence import COPY_ID, KIND, REASON, Evidence, cut
from .ladder import round_up, ticks_for
from .outcome import Dead, Duplicate, Outcome, Retry, Snoozed
from .publication import DEAD, DELAYED, READY, Publication

_REASON_BYTES: Final = 1024


class Copies:
    """Builds the publications of an outcome.

    Parameters:
        publication_of: turns a follow-up message and its delay in milliseconds into a publication.
        longest: ticks of the longest delay that the ladders hold; a longer one is cut to it.
    """

    def __init__(
        self, publication_of: Callable[[Message[Any], int | None], Publication], longest: int
    ) -> None:
        self._publication_of = publication_of
        self._longest = longest

    def of(
        self, delivery: Delivery, outcome: Outcome, *, full: bool = True, alone: bool = False
    ) -> list[Publication]:
        """Return what to publish, in an order that is the same every time.

        Parameters:
            delivery: the delivery.
            outcome: how it ended.
            full: False leaves history and traceback out, for a broker that refused them.
            alone: publish the copy with nothing else in flight.
        """
        # A snoozed job has not failed and a duplicate has not run: nothing follows them.
        following = () if isinstance(outcome, Snoozed | Duplicate) else delivery.follow_ups
        publications = [self._publication_of(message, delay_ms) for message, delay_ms in following]
        evidence = delivery.evidence
        if isinstance(outcome, Retry):
            after = evidence.failed(outcome.kind, outcome.error).next_attempt()
            headers = {**after.to_headers(full=full), KIND: outcome.kind}
            ticks = ticks_for(outcome.delay) if outcome.exact else round_up(ticks_for(outcome.delay))
            publications.append(self._later(delivery, headers, outcome.delay, ticks, alone))
        elif isinstance(outcome, Snoozed):
            headers = evidence.snoozed().to_headers(full=full)
            publications.append(
                self._later(delivery, headers, outcome.delay, ticks_for(outcome.delay), alone)
            )
        elif isinstance(outcome, Dead):
            publications.append(_dead_letter(delivery, outcome, full, alone))
        return publications

    def _later(
        self, delivery: Delivery, headers: dict[str, Any], delay: timedelta, ticks: int, alone: bool
    ) -> Publication:
        if delay <= timedelta(0):
            return _copy(delivery, READY, headers, alone)
        return _copy(delivery, DELAYED, headers, alone, min(ticks, self._longest))


def _dead_letter(delivery: Delivery, outcome: Dead, full: bool, alone: bool) -> Publication:
    evidence: Evidence = delivery.evidence.failed(outcome.kind, outcome.error, outcome.reason)
    last = evidence.history[-1]
    reason = cut(str(last["message"]) or str(last["exception"]) or outcome.kind, _REASON_BYTES)
    headers = evidence.to_headers(full=full)
    headers |= {KIND: outcome.kind, REASON: reason, COPY_ID: uuid.uuid4().hex}
    return _copy(delivery, DEAD, headers, alone)


def _copy(
    delivery: Delivery, place: str, headers: dict[str, Any], alone: bool, ticks: int = 0
) -> Publication:
    return Publication(
        queue=delivery.queue_name,
        place=place,
        body=delivery.body,
        message_id=delivery.message_id,
        actor=delivery.actor_name,
        timestamp=delivery.message_timestamp // 1000,
        headers=headers,
        ticks=ticks,
        alone=alone,
    )
