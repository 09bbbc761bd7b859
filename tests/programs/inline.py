"""A program that runs a job without a server, one more in a forked child, and closes nothing."""

from __future__ import annotations

import os
import sys

import dramatiq

from tests.brokers import QUEUE, build_inline_broker


def main() -> None:
    """Print what ran, the parent's line first."""
    broker = build_inline_broker()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def tell(who: str) -> None:
        print(who, "ran", flush=True)  # noqa: T201  # the test reads it

    tell.send("parent")
    broker.join(QUEUE, timeout=5000)
    child = os.fork()
    if not child:
        tell.send("child")
        broker.join(QUEUE, timeout=5000)
        os._exit(0)
    _pid, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
