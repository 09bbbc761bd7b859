"""A program that takes a message from a queue and dies with it in hand, as a new process each time.

`python -m tests.acceptance.crashing_reader URL QUEUE TIMES` ends with 0 if it got the message each time.
"""

from __future__ import annotations

import os
import signal
import sys

import pika


def _take_it_and_die(url: str, queue: str) -> None:
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.basic_qos(prefetch_count=1)
    next(channel.consume(queue))
    os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, queue: str, times: str) -> int:
    """Crash so many times."""
    for _ in range(int(times)):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # then there is nothing to take, and the test fails
            _take_it_and_die(url, queue)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
