from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from dramatiq.middleware import Interrupt

from middleware.failures.interrupts import Armed, Interrupts
from tests.waiting import wait_until


class Stop(Interrupt):
    """An interrupt of this test."""


def run_in_thread(target: Callable[[], Any]) -> Any:
    """Run a function in a thread of its own and return what it returns or raises."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(target())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return result[0]


def spin(seconds: float = 5.0) -> None:
    """Run bytecode for a while."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_a_thread_that_is_armed_is_interrupted() -> None:
    """An interrupt is raised in a thread between `arm` and its end."""
    interrupts = Interrupts()
    armed = threading.Event()

    def work() -> str:
        stretch = interrupts.arm(threading.get_ident(), 60)
        armed.set()
        try:
            spin()
        except Stop:
            interrupts.withdraw(stretch)
            return "interrupted"
        return "finished"

    def interrupt() -> None:
        armed.wait()
        interrupts.fire_all(Stop)

    threading.Thread(target=interrupt).start()
    assert run_in_thread(work) == "interrupted"


def test_only_what_is_due_is_interrupted() -> None:
    """`fire_due` leaves alone whose deadline is not over."""
    interrupts = Interrupts()
    stretch = interrupts.arm(threading.get_ident(), 60)
    assert interrupts.fire_due(Stop) == []
    assert interrupts.withdraw(stretch) is None


def test_an_interrupt_does_not_land_after_the_work() -> None:
    """An interrupt that is raised but has not landed when the work ends is taken back, and is reported."""
    interrupts = Interrupts()
    stretches: list[Armed] = []
    waits_in_c = threading.Lock()  # where an interrupt cannot land: as a thread waits for its coroutine
    waits_in_c.acquire()

    def work() -> str:
        stretches.append(interrupts.arm(threading.get_ident(), 0))
        waits_in_c.acquire()
        spin(0.2)
        return "finished"

    def end_in_the_last_moment() -> None:
        wait_until(lambda: stretches, what="the thread to be armed")
        wait_until(lambda: interrupts.fire_due(Stop), what="the interrupt to be raised")
        with pytest.raises(Stop):
            interrupts.disarm(stretches[0])
        waits_in_c.release()

    other = threading.Thread(target=end_in_the_last_moment)
    other.start()
    assert run_in_thread(work) == "finished"
    other.join()


def test_a_thread_that_is_not_armed_is_left_alone() -> None:
    """After `disarm` nothing can interrupt the thread."""
    interrupts = Interrupts()
    interrupts.disarm(interrupts.arm(threading.get_ident(), 0))
    assert interrupts.fire_all(Stop) == []
    spin(0.05)


def test_each_stretch_is_interrupted_once() -> None:
    """A stretch that was interrupted is not interrupted again, however long it takes to end."""
    interrupts = Interrupts()
    ready, done = threading.Event(), threading.Event()

    def work() -> str:
        stretch = interrupts.arm(threading.get_ident(), 0)
        ready.set()
        try:
            while not done.wait(0.01):
                pass
        except Stop:
            try:
                while not done.wait(0.01):
                    pass
            finally:
                interrupts.withdraw(stretch)
            return "once"
        return "never"

    hits: list[int] = []

    def interrupt() -> None:
        ready.wait()
        for _ in range(5):
            hits.extend(interrupts.fire_due(Stop))
            done.wait(0.02)
        done.set()

    threading.Thread(target=interrupt).start()
    assert run_in_thread(work) == "once"
    assert len(hits) == 1


def test_a_stretch_that_ends_late_does_not_touch_the_next_one() -> None:
    """Withdrawing an old stretch of a thread leaves the thread's new one armed."""
    interrupts = Interrupts()
    old = interrupts.arm(threading.get_ident(), 60)
    new = interrupts.arm(threading.get_ident(), 60)
    assert interrupts.withdraw(old) is None
    assert interrupts._armed == {threading.get_ident(): new}
    interrupts.disarm(new)


def test_a_shielded_stretch_is_not_interrupted() -> None:
    """An interrupt that is due while a stretch is shielded comes after it, not in it."""
    interrupts = Interrupts()
    reached: list[str] = []

    def work() -> None:
        armed = interrupts.arm(threading.get_ident(), 60)
        with armed.shielded():
            assert interrupts.fire_all(Stop) == []
            reached.append("end of the stretch")
        assert interrupts.fire_all(Stop) == [threading.get_ident()]
        spin()

    assert isinstance(run_in_thread(work), Stop)
    assert reached == ["end of the stretch"]


def test_a_shield_is_not_entered_after_an_interrupt() -> None:
    """A job that was interrupted, and swallowed it, does not come to commit."""
    interrupts = Interrupts()
    reached: list[str] = []

    def work() -> None:
        armed = interrupts.arm(threading.get_ident(), 60)
        with suppress(Stop):
            interrupts.fire_all(Stop)
            spin()
        with armed.shielded():
            reached.append("commit")

    assert isinstance(run_in_thread(work), Stop)
    assert reached == []
