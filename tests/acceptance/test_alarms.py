"""What still works while a memory alarm blocks publishing?"""

from __future__ import annotations

from datetime import timedelta

import pytest

from middleware import EnqueueError

from ..control import Control
from ..waiting import wait_until
from .deployment import Deployment, probe, probes


@pytest.mark.owned_services
def test_a_memory_alarm_does_not_stop_acknowledgements(deployment: Deployment, control: Control) -> None:
    """Under the alarm jobs run and are acknowledged; a retry waits for the alarm's end and is not lost."""
    worker = deployment.start(threads=2).wait_ready()
    names = [f"p{number}" for number in range(200)]
    deployment.send(probe("failing", failures=1, gates=["alarm"]), *probes(names, gates=["alarm"]))
    wait_until(lambda: deployment.seen.of("began"), what="the first job")
    with control.memory_alarm():
        # The worker's publisher connects when it has something to publish; it must meet the alarm.
        deployment.gates.open("alarm")
        wait_until(lambda: len(deployment.seen.of("ended")) == len(names), what="all jobs under the alarm")
        wait_until(lambda: deployment.rabbit.ready("critical") == 0, what="the queue to be empty")
        assert deployment.seen.count("failed", "failing") == 1
        worker.kill()
        wait_until(lambda: deployment.rabbit.ready("critical"), what="the unsettled job to be back")
        assert deployment.rabbit.ready("critical") < 5, "expected what ended to be acknowledged"
        sender = deployment.make_sender(publish_timeout=timedelta(seconds=1))
        with pytest.raises(EnqueueError):
            sender.enqueue(probe("sent under the alarm"))
        deployment.start().wait_ready()
        wait_until(lambda: deployment.seen.count("failed", "failing") == 2, what="the first attempt again")
    wait_until(lambda: deployment.seen.count("ended", "failing"), what="the retry after the alarm")
    # Twice, if the broker still finds the killed worker's retry in its socket: at least once, never less.
    assert {event.attempt for event in deployment.seen.of("ended", "failing")} == {2}
