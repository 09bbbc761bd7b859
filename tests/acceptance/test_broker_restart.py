"""Is anything lost when the broker goes and comes back while jobs run and are being sent?"""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from middleware import EnqueueUnknown, NotEnqueued

from ..control import Control
from ..waiting import wait_until
from .books import RecordUsages, charge, charges
from .deployment import Deployment

_USAGES = 6000
_BEFORE = 1000
"""Sent before the restart, 300 of them twice."""


class Sending:
    """A thread that sends one charge after the other, whatever happens, until it is told to stop.

    Attributes:
        confirmed: numbers of the usages whose `send` returned.
        refused: those that raised NotEnqueued.
        unknown: those that raised EnqueueUnknown.
    """

    def __init__(self, deployment: Deployment, numbers: range) -> None:
        self.confirmed: list[int] = []
        self.refused: list[int] = []
        self.unknown: list[int] = []
        self._broker = deployment.make_sender(publish_timeout=timedelta(seconds=2))
        self._numbers = numbers
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in self._numbers:
            if self._stop.wait(0.005):
                return
            try:
                self._broker.enqueue(charge(number))
            except NotEnqueued:
                self.refused.append(number)
            except EnqueueUnknown:
                self.unknown.append(number)
            else:
                self.confirmed.append(number)

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()
        self._thread.join()


@pytest.mark.owned_services
@pytest.mark.parametrize("way", ["restart", pytest.param("crash", marks=pytest.mark.slow)])
def test_each_usage_is_charged_once_though_the_broker_restarts(
    deployment: Deployment, control: Control, record_usages: RecordUsages, way: str
) -> None:
    """While the broker is away every send raises what it is documented to; what it confirmed runs, once."""
    books = record_usages(_USAGES)
    deployment.send(*charges(_BEFORE, twice=300))
    worker = deployment.start().wait_ready()
    wait_until(lambda: books.count() > 100, what="the worker to be in the middle of it")
    sending = Sending(deployment, range(_BEFORE, _USAGES))
    try:
        wait_until(lambda: sending.confirmed, what="the first send")
        if way == "crash":
            control.run("kill", "rabbitmq")
            control.run("start", "rabbitmq")
        else:
            control.run("restart", "rabbitmq")
        before = len(sending.confirmed)
        wait_until(lambda: len(sending.confirmed) > before + 20, what="sends after the restart", seconds=60)
    finally:
        sending.stop()
    assert sending.refused, "expected sends to be refused while there was no broker"
    assert worker.exit_code is None
    wait_until(lambda: not deployment.open(), what="the same worker to finish", seconds=60)
    worker.stop()
    deployment.work_off()
    stored = {*range(_BEFORE), *sending.confirmed}
    books.check(stored | (set(books.charged()) & set(sending.unknown)))
    assert deployment.waiting() == {}
