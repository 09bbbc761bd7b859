"""What if the connections go while a job runs?"""

from __future__ import annotations

import pytest

from ..waiting import wait_until
from .deployment import Deployment, probe, probes


@pytest.mark.parametrize(
    "rejections",
    [pytest.param(1, id="rejected"), pytest.param(0, id="completed", marks=pytest.mark.slow)],
)
def test_the_end_of_a_job_of_a_closed_connection_settles_no_other_job(
    deployment: Deployment, rejections: int
) -> None:
    """A job that ends after an operator closed its connection neither removes nor dead-letters another one.

    Its delivery had number 3. On the new connection number 3 is another job's, which has not run yet when
    the worker is killed: if the late outcome had settled that one, it would be gone.
    """
    worker = deployment.start(threads=1).wait_ready()
    deployment.send(*probes(["warm-up 1", "warm-up 2"]))
    wait_until(lambda: len(deployment.seen.of("ended")) == 2, what="deliveries 1 and 2 to end")
    deployment.send(probe("held", gates=["first", "second"], rejections=rejections), *probes(["b", "c", "d"]))
    wait_until(lambda: deployment.seen.count("began", "held") == 1, what="delivery 3 to begin")
    wait_until(lambda: deployment.rabbit.ready("critical") == 0, what="all jobs to be prefetched")

    deployment.rabbit.close_connections("critical")
    wait_until(lambda: "connection.established" in worker.text(), what="the worker to reconnect")
    wait_until(lambda: deployment.rabbit.ready("critical") == 0, what="all jobs to be delivered again")
    deployment.gates.open("first")
    wait_until(lambda: deployment.seen.count("began", "held") == 2, what="the held job's second delivery")
    worker.kill()
    wait_until(lambda: deployment.waiting() == {"critical": 4}, what="the broker to put all four back")

    deployment.gates.open("second")
    deployment.work_off()
    assert {event.name for event in deployment.seen.of("ended")} >= {"held", "b", "c", "d"}
    assert deployment.waiting() == {}
