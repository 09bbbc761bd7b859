"""What if somebody replaces a queue under a running worker? Never: alive but consuming nothing."""

from __future__ import annotations

import pytest

from ..waiting import wait_until
from .deployment import Deployment, probe
from .foreign import CRITICAL, replace_critical

pytestmark = pytest.mark.slow  # a process for each command


def test_a_queue_that_differs_later_ends_the_worker(deployment: Deployment) -> None:
    """A queue that comes back with another argument ends the process, which names both values."""
    worker = deployment.start()
    deployment.send(probe("first"))
    wait_until(lambda: deployment.seen.count("ended", "first"), what="the worker to consume")
    with worker.frozen():  # or it would declare the queue itself before we can
        replace_critical(deployment, {**CRITICAL, "x-delivery-limit": 7})
    assert worker.wait_ended() != 0
    (reason,) = [line for line in worker.text().splitlines() if "Ending the process" in line]
    missing = [word for word in ("'critical'", "x-delivery-limit", "1000", "7") if word not in reason]
    assert missing == []
