"""Is anything lost when the broker goes and comes back while jobs run and are being sent?"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Final

import pytest

from middleware import EnqueueUnknown, NotEnqueued, QuorumBroker

from ..control import Control
from ..waiting import wait_until
from .books import RecordUsages, charge, charges
from .deployment import Deployment

_USAGES: Final = 30_000
_BEFORE: Final = 1000
"""Sent before the restart, 300 of them twice."""
_THREADS: Final = 8
_PUBLISH_TIMEOUT: Final = timedelta(seconds=2)


class Sending:
    """Threads that send one charge after the other, whatever happens, until they are told to stop.

    Attributes:
        confirmed: numbers of the usages whose `send` returned.
        refused: those that raised NotEnqueued.
        unknown: those that raised EnqueueUnknown.
    """

    def __init__(self, broker: QuorumBroker, numbers: range) -> None:
        self.confirmed: list[int] = []
        self.refused: list[int] = []
        self.unknown: list[int] = []
        self._broker = broker
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(numbers[first::_THREADS],)) for first in range(_THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, numbers: range) -> None:
        for number in numbers:
            if self._stop.wait(0.005):  # leaves some of the machine to the others
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
        for thread in self._threads:
            thread.join()


@pytest.mark.owned_services
@pytest.mark.parametrize("way", ["crash", pytest.param("orderly", marks=pytest.mark.slow)])
def test_each_usage_is_charged_once_though_the_broker_restarts(
    deployment: Deployment, control: Control, record_usages: RecordUsages, way: str
) -> None:
    """While the broker is away every send raises what it is documented to; what it confirmed runs, once."""
    books = record_usages(_USAGES)
    deployment.send(*charges(_BEFORE, twice=300))
    worker = deployment.start().wait_ready()
    wait_until(lambda: books.count() > 100, what="the worker to be in the middle of it")
    sender = deployment.make_sender(publish_timeout=_PUBLISH_TIMEOUT)
    sending = Sending(sender, range(_BEFORE, _USAGES))
    try:
        wait_until(lambda: len(sending.confirmed) > _THREADS, what="all threads to send")
        if way == "crash":
            control.run("kill", "rabbitmq")
            control.run("start", "rabbitmq")
        else:
            control.run("restart", "rabbitmq")
        before = len(sending.confirmed)
        wait_until(lambda: len(sending.confirmed) > before + 100, what="sends after the restart", seconds=60)
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
