"""What if the broker does not take a retry?"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from middleware import NotEnqueued

from ..control import Control
from ..waiting import wait_until
from .deployment import Deployment, probe, probes

_MS: Final = timedelta(milliseconds=1)
_SHORTER: Final = timedelta(minutes=10)
_LONGER: Final = timedelta(minutes=17)


def test_a_retry_that_the_ladder_refuses_becomes_a_dead_letter(deployment: Deployment) -> None:
    """A policy makes the ladder refuse the retry: the job is in critical.XQ, and its neighbours end well."""
    worker = deployment.start().wait_ready()
    for delay in (_SHORTER, _LONGER):  # the levels at which a retry after 600 to 1,200 s begins
        deployment.send(*probes(["waiting"] * 3), delay=delay)
    deployment.rabbit.set_policy(r"^critical\.delay\.", max_length=1)
    for delay in (_SHORTER, _LONGER):
        wait_until(lambda: _is_refused(deployment, delay), what="the ladder to refuse")  # noqa: B023
    delayed = deployment.waiting()
    retry = {"min_backoff": _SHORTER // _MS, "max_backoff": 2 * _SHORTER // _MS}
    neighbours = [f"n{number}" for number in range(20)]
    deployment.send(probe("failing", failures=1, options=retry), *probes(neighbours))
    deployment.wait_for_dead_letter()
    worker.stop()
    assert [letter.name for letter in deployment.dead_letters()] == ["failing"]
    assert sorted(event.name for event in deployment.seen.of("ended")) == sorted(neighbours)
    assert deployment.waiting() == delayed | {"critical.XQ": 1}


def _is_refused(deployment: Deployment, delay: timedelta) -> bool:
    try:
        deployment.send(probe("waiting"), delay=delay)
    except NotEnqueued:
        return True
    return False


@pytest.mark.owned_services
def test_a_broker_that_takes_small_messages_only_gets_every_retry(
    deployment: Deployment, control: Control
) -> None:
    """With no room for a traceback beside the message all attempts happen; one dead letter says why."""
    job = probe("failing", failures=9, depth=20, padding="x" * 20_000, options={"max_retries": 2})
    with control.max_message_size(len(job.encode()) + 64):
        worker = deployment.start().wait_ready()
        deployment.send(job)
        letter = deployment.wait_for_dead_letter()
        worker.stop()
    assert [event.attempt for event in deployment.seen.of("failed")] == [1, 2, 3]
    assert letter.name == "failing"
    assert letter.headers["jobs-attempt"] == 3
    assert "RuntimeError: failing fails" in letter.headers["jobs-traceback"]
    assert deployment.waiting() == {"critical.XQ": 1}


@pytest.mark.owned_services
def test_a_job_too_large_for_any_retry_becomes_a_dead_letter(
    deployment: Deployment, control: Control
) -> None:
    """If the broker no longer takes the message itself, the failed job is in critical.XQ instead of lost."""
    job = probe("failing", failures=9, padding="x" * 20_000)
    deployment.send(job)
    with control.max_message_size(len(job.encode()) - 64):
        worker = deployment.start().wait_ready()
        letter = deployment.wait_for_dead_letter()
        worker.stop()
    assert letter.name == "failing"
    assert deployment.waiting() == {"critical.XQ": 1}
