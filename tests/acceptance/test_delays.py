"""Do delayed jobs wait in the broker, each for its own time, and in nobody's way?"""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from ..control import Control
from ..waiting import wait_until
from .deployment import Deployment, probe, probes


def test_a_short_delay_does_not_wait_behind_a_long_one(deployment: Deployment) -> None:
    """A job sent with a delay of 1 s after one of 8 s runs after 1 s, the other after 8 s."""
    deployment.start().wait_ready()
    sent = time.time()
    deployment.send(probe("eight"), delay=timedelta(seconds=8))
    deployment.send(probe("one"), delay=timedelta(seconds=1))
    wait_until(lambda: deployment.seen.count("ended", "eight"), what="both jobs to run")
    one, eight = deployment.seen.of("ended")
    assert (one.name, eight.name) == ("one", "eight")
    assert 1.0 <= one.at - sent < 5.0
    assert 8.0 <= eight.at - sent < 12.0


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_delayed_jobs_do_not_grow_the_worker(deployment: Deployment, count: int) -> None:
    """However many jobs wait for their time, the worker's memory does not know, and jobs that are due run."""
    worker = deployment.start().wait_ready()
    deployment.send(*probes(["warm-up"] * 200))
    wait_until(lambda: deployment.seen.count("ended", "warm-up") == 200, what="the warm-up jobs")
    before = worker.memory()
    deployment.send(*probes(["later"] * count), delay=timedelta(hours=1))
    deployment.send(probe("now"))
    wait_until(lambda: deployment.seen.count("ended", "now"), what="a job that is due")
    assert deployment.open() == count
    assert worker.memory() - before < 4 * 1024 * 1024  # held in memory, 10,000 take 11 MiB


@pytest.mark.owned_services
@pytest.mark.parametrize("trouble", ["gone", "full"])
def test_delayed_jobs_that_find_no_place_hold_up_no_other_queue(
    deployment: Deployment, control: Control, trouble: str
) -> None:
    """Jobs whose queue is gone or full wait in its ladder; other queues' jobs come; in the end all run."""
    names = [f"l{number}" for number in range(50)]
    with control.dead_letter_retry(timedelta(seconds=1)):
        deployment.send(probe("first", queue="llm"))
        if trouble == "gone":
            deployment.rabbit.delete_queue("llm")
        else:
            deployment.send(*probes(["second", "third"], queue="llm"))
            deployment.rabbit.set_policy("^llm$", max_length=1)
        deployment.send(*probes(names, queue="llm"), delay=timedelta(milliseconds=200))
        deployment.start().wait_ready()
        deployment.send(probe("due"), delay=timedelta(milliseconds=500))
        wait_until(lambda: deployment.seen.count("ended", "due"), what="the other queue's delayed job")
        assert not set(names) & {event.name for event in deployment.seen.events()}

        unchecked = {"JOBS_MANAGEMENT_URL": ""}  # the policy would keep this worker from starting
        deployment.start(queues=["llm"], settings=unchecked).wait_ready()
        wait_until(
            lambda: set(names) <= {event.name for event in deployment.seen.of("ended")},
            what="all jobs of the queue that is back",
        )


def test_a_rejected_job_that_came_through_the_ladder_is_a_dead_letter(deployment: Deployment) -> None:
    """A delayed job that its actor rejects is in its queue's dead letters, with the reason."""
    worker = deployment.start().wait_ready()
    deployment.send(probe("delayed", rejections=1), delay=timedelta(milliseconds=700))
    letter = deployment.wait_for_dead_letter()
    worker.stop()
    assert letter.name == "delayed"
    assert letter.headers["jobs-kind"] == "rejected"
    assert letter.headers["jobs-reason"] == "delayed is rejected"
    assert deployment.waiting() == {"critical.XQ": 1}


def test_a_job_that_came_through_the_ladder_can_be_rejected_by_any_client(deployment: Deployment) -> None:
    """A plain AMQP reject of a job that was delayed lands in its queue's dead letters too."""
    deployment.send(probe("delayed"), delay=timedelta(milliseconds=600))  # its routing key is 0.0.1.1
    wait_until(lambda: deployment.rabbit.ready("critical"), what="the job to be due")
    with deployment.rabbit.channel() as channel:
        method = channel.basic_get("critical")[0]
        assert method is not None
        channel.basic_reject(method.delivery_tag, requeue=False)
    letter = deployment.wait_for_dead_letter()
    assert letter.name == "delayed"
    assert deployment.waiting() == {"critical.XQ": 1}
