"""When is the publisher's connection free for a sender?"""

from __future__ import annotations

from middleware import QuorumBroker
from tests.waiting import wait_until


def wait_for_turn(broker: QuorumBroker) -> None:
    """Wait until the publisher's thread is done with the connection, and does not just lend it."""

    def is_free() -> bool:
        turn = broker.publisher._turn
        if not turn.acquire(blocking=False):
            return False
        try:
            return not broker.publisher._is_served
        finally:
            turn.release()

    wait_until(is_free, what="the publisher's thread to be done")
