"""When is the publisher's connection free for a sender?"""

from __future__ import annotations

from middleware import QuorumBroker
from tests.waiting import wait_until


def wait_for_turn(broker: QuorumBroker) -> None:
    """Wait until the publisher's thread is done with the connection."""

    def is_free() -> bool:
        turn = broker.publisher._turn
        free = turn.acquire(blocking=False)
        if free:
            turn.release()
        return free

    wait_until(is_free, what="the publisher's thread to be done")
