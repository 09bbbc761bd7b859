"""A program without a server whose job still runs when its main thread ends."""

from __future__ import annotations

import threading

import dramatiq

from tests.brokers import QUEUE, build_inline_broker


def main() -> None:
    """Print when the job begins and ends; the main thread ends between the two."""
    broker = build_inline_broker()
    began = threading.Event()

    @dramatiq.actor(broker=broker, queue_name=QUEUE)
    def outlast() -> None:
        print("began", flush=True)  # noqa: T201  # the test reads it
        began.set()
        threading.main_thread().join()
        print("ended", flush=True)  # noqa: T201  # as above

    outlast.send()
    began.wait()


if __name__ == "__main__":
    main()
