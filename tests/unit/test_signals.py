"""Which of a worker's signals are meant?"""

from __future__ import annotations

import signal

import pytest

from middleware.failures.signals import ECHO_SECONDS, FirstSignal


class Heard:
    """A handler, what it has heard, and the time."""

    def __init__(self, *, was_heard: bool = False) -> None:
        self.numbers: list[int] = []
        self.now = 1000.0
        self.signals = FirstSignal(
            lambda number, _frame: self.numbers.append(number), was_heard=was_heard, clock=lambda: self.now
        )

    def send(self, number: int, after: float = 0.0) -> None:
        """Let some time pass, then send a signal."""
        self.now += after
        self.signals(number, None)


@pytest.fixture
def heard() -> Heard:
    """A handler that has heard nothing."""
    return Heard()


def test_an_echo_is_not_heard(heard: Heard) -> None:
    """Signals in quick succession, also of two kinds, are one."""
    heard.send(signal.SIGTERM)
    heard.send(signal.SIGTERM)
    heard.send(signal.SIGHUP, after=ECHO_SECONDS - 0.1)
    assert heard.numbers == [signal.SIGTERM]


def test_a_second_signal_is_heard(heard: Heard) -> None:
    """Whoever signals again after a while means it."""
    heard.send(signal.SIGTERM)
    heard.send(signal.SIGTERM, after=ECHO_SECONDS)
    assert heard.numbers == [signal.SIGTERM] * 2


def test_the_masters_echo_may_come_late(heard: Heard) -> None:
    """However long a start takes that was signalled, what the master passes on after it is the echo."""
    heard.send(signal.SIGTERM)
    heard.now += 10 * ECHO_SECONDS
    heard.signals.await_echo()
    heard.send(signal.SIGTERM, after=ECHO_SECONDS - 0.1)
    assert heard.numbers == [signal.SIGTERM]
    heard.send(signal.SIGTERM, after=ECHO_SECONDS)
    assert heard.numbers == [signal.SIGTERM] * 2


def test_the_first_signal_may_have_come_before() -> None:
    """What follows a signal that somebody else heard is its echo, or a second one."""
    heard = Heard(was_heard=True)
    heard.send(signal.SIGTERM)
    assert heard.numbers == []
    heard.send(signal.SIGTERM, after=ECHO_SECONDS)
    assert heard.numbers == [signal.SIGTERM]


def test_without_a_signal_there_is_no_echo(heard: Heard) -> None:
    """The first signal after an undisturbed start is heard at once."""
    heard.signals.await_echo()
    heard.send(signal.SIGTERM)
    assert heard.numbers == [signal.SIGTERM]
