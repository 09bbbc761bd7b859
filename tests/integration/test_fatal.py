"""When does a worker that runs end itself? Before it would be alive and consume nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import pytest

from tests.brokers import QUEUE
from tests.rabbit import Rabbit

CONFIGURATION = 78
SOFTWARE = 70
RunWorker: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run_worker(rabbit: Rabbit) -> Iterator[RunWorker]:
    """Run a worker in a process of its own until it is ready; it is killed at the test's end."""
    with ExitStack() as stack:

        def run(*words: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "tests.programs.worker", rabbit.url, *words]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            return process

        yield run


def test_a_queue_that_comes_back_different_ends_the_process(rabbit: Rabbit, run_worker: RunWorker) -> None:
    """A queue that was replaced by another ends the process, naming both and the way out."""
    worker = run_worker()
    with rabbit.channel() as channel:
        channel.queue_delete(QUEUE)
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
    _output, errors = worker.communicate(timeout=20)
    assert worker.returncode == CONFIGURATION
    assert f"queue {QUEUE!r}: expected x-dead-letter-exchange to be jobs.dlx" in errors
    assert (
        "got: none on the broker; change the Queue to the broker's value, or let the queue run empty"
        in errors
    )


def test_a_worker_thread_that_dies_ends_the_process(run_worker: RunWorker) -> None:
    """A process that lost one of its threads ends, so that another one takes its jobs."""
    worker = run_worker("dying")
    _output, errors = worker.communicate(timeout=20)
    assert worker.returncode == SOFTWARE
    assert "expected all worker and consumer threads to live, got dead:" in errors
