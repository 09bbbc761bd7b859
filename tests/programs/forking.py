"""A program that sends, forks, and sends from both processes; its argument is the broker's address."""

from __future__ import annotations

import os
import sys

import dramatiq

from tests.brokers import QUEUE, build_quorum_broker


def main() -> int:
    """Return 0 if all three sends were confirmed."""
    broker = build_quorum_broker(sys.argv[1])

    def send(text: str) -> None:
        broker.enqueue(
            dramatiq.Message(queue_name=QUEUE, actor_name="far_away", args=(text,), kwargs={}, options={})
        )

    send("before the fork")
    child = os.fork()
    if not child:
        send("by the child")
        os._exit(0)
    send("by the parent")
    _pid, status = os.waitpid(child, 0)
    broker.close()
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
