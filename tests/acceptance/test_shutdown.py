"""What does SIGTERM do to the jobs that a worker holds?"""

from __future__ import annotations

import signal
from typing import Final

import pytest
from dramatiq import Message

from middleware.failures.signals import ECHO_SECONDS

from ..waiting import stays, wait_until
from .books import RecordUsages
from .deployment import Deployment, probe, probes

SLOW_START: Final = "tests.acceptance.slow_start"


def test_sigterm_returns_prefetched_jobs_at_once_and_lets_the_running_one_finish(
    deployment: Deployment,
) -> None:
    """Jobs that no thread has begun are back in the queue while another still runs; all run once."""
    worker = deployment.start(threads=1).wait_ready()
    others = ["b", "c", "d", "e", "f"]
    deployment.send(probe("running", gates=["finish"]), *probes(others))
    wait_until(lambda: deployment.seen.count("began", "running"), what="the first job to begin")
    wait_until(lambda: deployment.rabbit.ready("critical") == 0, what="the others to be prefetched")
    worker.terminate()
    wait_until(
        lambda: deployment.rabbit.ready("critical") == len(others), what="the prefetched jobs to be back"
    )
    assert deployment.seen.of("ended") == []
    deployment.gates.open("finish")
    assert worker.wait_ended() == 0
    assert [event.name for event in deployment.seen.of("ended")] == ["running"]
    assert deployment.waiting() == {"critical": len(others)}
    deployment.work_off()
    assert sorted(event.name for event in deployment.seen.of("began")) == sorted(["running", *others])
    assert len(deployment.seen.of("ended")) == 1 + len(others)
    assert deployment.waiting() == {}


def test_a_job_that_outlasts_the_grace_is_returned_and_uses_no_attempt(deployment: Deployment) -> None:
    """After the grace a running job is interrupted and goes back to its queue; its next run is attempt 1."""
    worker = deployment.start(settings={"JOBS_SHUTDOWN_GRACE": "500ms"}).wait_ready()
    deployment.send(probe("long", gates=["finish"]))
    wait_until(lambda: deployment.seen.count("began", "long"), what="the job to begin")
    worker.stop()
    assert deployment.seen.of("ended") == []
    assert deployment.waiting() == {"critical": 1}
    deployment.gates.open("finish")
    deployment.work_off()
    assert [event.attempt for event in deployment.seen.of("began")] == [1, 1]
    assert len(deployment.seen.of("ended")) == 1
    assert deployment.waiting() == {}


def test_an_async_job_that_outlasts_the_grace_is_cancelled_and_returned(
    deployment: Deployment, record_usages: RecordUsages
) -> None:
    """After the grace a coroutine is cancelled and cleans up; what it wrote is undone, its next run is 1."""
    books = record_usages(0)
    worker = deployment.start(settings={"JOBS_SHUTDOWN_GRACE": "500ms"}).wait_ready()
    deployment.send(Message("critical", "probe_async", ("long", "finish"), {}, {}))
    wait_until(lambda: deployment.seen.count("began", "long"), what="the job to begin")
    worker.stop()
    assert [event.what for event in deployment.seen.events()] == ["began", "cancelled"]
    assert books.count() == 0
    assert deployment.waiting() == {"critical": 1}
    assert "Task was destroyed" not in worker.text()
    deployment.gates.open("finish")
    deployment.work_off()
    assert [event.attempt for event in deployment.seen.of("began")] == [1, 1]
    assert books.count() == 1
    assert deployment.waiting() == {}


def test_a_second_sigterm_ends_the_worker_and_loses_nothing(deployment: Deployment) -> None:
    """Told again after a while, a worker ends while its job runs; the broker delivers the job again."""
    worker = deployment.start().wait_ready()
    deployment.send(probe("long", gates=["finish"]))
    wait_until(lambda: deployment.seen.count("began", "long"), what="the job to begin")
    worker.terminate()
    wait_until(lambda: "Shutting down..." in worker.text(), what="the first signal to be heard")

    def told_again() -> bool:
        worker.terminate()
        return worker.exit_code is not None

    wait_until(told_again, what="the worker to end")
    assert worker.exit_code != 0
    deployment.gates.open("finish")
    deployment.work_off()
    assert len(deployment.seen.of("ended")) == 1
    assert deployment.waiting() == {}


@pytest.mark.slow
def test_a_signal_to_the_whole_group_is_one_signal(deployment: Deployment) -> None:
    """`kill %1`, systemd and containers signal master and workers alike: the running job still finishes."""
    worker = deployment.start().wait_ready()
    deployment.send(probe("running", gates=["finish"]))
    wait_until(lambda: deployment.seen.count("began", "running"), what="the job to begin")
    worker.signal_group(signal.SIGTERM)
    wait_until(lambda: "Shutting down..." in worker.text(), what="the signal to be heard")
    deployment.gates.open("finish")
    assert worker.wait_ended() == 0
    assert [event.name for event in deployment.seen.of("ended")] == ["running"]
    assert deployment.waiting() == {}


@pytest.mark.parametrize("modules", [["jobs", SLOW_START], [SLOW_START, "jobs"]], ids=["actors", "broker"])
@pytest.mark.slow
def test_a_signal_to_the_whole_group_during_the_start_is_one_signal(
    deployment: Deployment, modules: list[str]
) -> None:
    """A worker that is told to stop while it imports broker or actors ends as orderly as one told later."""
    worker = deployment.start(modules=modules)
    wait_until(lambda: deployment.seen.count("began", "import"), what="the import to begin")
    worker.signal_group(signal.SIGTERM)
    stays(lambda: worker.exit_code is None, what="the worker to go on starting", seconds=ECHO_SECONDS)
    deployment.gates.open("import")
    assert worker.wait_ended() == 0


@pytest.mark.slow
def test_a_hangup_of_the_whole_group_reloads_the_worker_and_ends_no_job(deployment: Deployment) -> None:
    """On SIGHUP, which a session's end sends to all, the running job finishes and new processes take over."""
    worker = deployment.start().wait_ready()
    deployment.send(probe("running", gates=["finish"]))
    wait_until(lambda: deployment.seen.count("began", "running"), what="the job to begin")
    worker.signal_group(signal.SIGHUP)
    wait_until(lambda: "Shutting down..." in worker.text(), what="the signal to be heard")
    deployment.gates.open("finish")
    wait_until(lambda: len(worker.pids()) == 2, what="the worker to be back", seconds=40)
    assert len(deployment.seen.of("began")) == len(deployment.seen.of("ended")) == 1
    assert worker.exit_code is None
