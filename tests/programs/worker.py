"""A worker in a process of its own: `python -m tests.programs.worker BROKER_URL [dying]`.

It prints `ready` once it consumes and runs until it is killed; with `dying` it loses a thread then.
"""

from __future__ import annotations

import sys
import threading

import dramatiq

from tests.brokers import QUEUE, build_quorum_broker, start_worker


def main() -> None:
    """Run jobs for ever."""
    broker = build_quorum_broker(sys.argv[1])
    ran = threading.Event()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def note() -> None:
        ran.set()

    worker = start_worker(broker)
    note.send()
    ran.wait()
    print("ready", flush=True)  # noqa: T201  # the test waits for it
    if "dying" in sys.argv:
        worker.workers[0].running = False  # ends the thread as a bug in it would
    threading.Event().wait()


if __name__ == "__main__":
    main()
