"""How is a running job interrupted, without an interrupt that lands after it has finished?

An interrupt is an exception that CPython raises in another thread at its next bytecode; a call into C
delays it. It is raised and withdrawn under one lock, and only between `arm` and `disarm`, which enclose
the actor's function and nothing else: not the ledger's commit, not another middleware. A commit within the
actor is shielded.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dramatiq.middleware import Interrupt

_set_async_exc: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc


class Armed:
    """A stretch of one thread's work that may be interrupted; what `arm` returned is what ends it.

    Attributes:
        thread_id: the thread.
        deadline: on the monotonic clock.
        fired: which interrupt was raised, if any; one at most.
        is_shielded: none may be raised for now.
    """

    __slots__ = ("_lock", "deadline", "fired", "is_shielded", "thread_id")

    def __init__(self, thread_id: int, deadline: float, lock: threading.Lock) -> None:
        self.thread_id = thread_id
        self.deadline = deadline
        self.fired: type[Interrupt] | None = None
        self.is_shielded = False
        self._lock = lock

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Keep interrupts out of the block, such as a commit; one that is due comes after it.

        Raises:
            Interrupt: it was interrupted before the block, which is not entered.
        """
        with self._lock:
            fired = self.fired
            self.is_shielded = fired is None
            if fired is not None:
                _set_async_exc(ctypes.c_ulong(self.thread_id), None)  # raised below instead
        if fired is not None:
            raise fired()
        try:
            yield
        finally:
            with self._lock:
                self.is_shielded = False


class Interrupts:
    """The threads that may be interrupted now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[int, Armed] = {}

    def arm(self, thread_id: int, seconds: float) -> Armed:
        """Allow interrupts of a thread and set its deadline, in seconds from now."""
        armed = Armed(thread_id, time.monotonic() + seconds, self._lock)
        with self._lock:
            self._armed[thread_id] = armed
        return armed

    def disarm(self, armed: Armed) -> None:
        """Forbid what `arm` allowed; nothing is pending in the thread afterwards.

        Raises:
            Interrupt: it was interrupted in the last moment: the job counts as interrupted.
        """
        fired = self.withdraw(armed)
        if fired is not None:
            raise fired()

    def withdraw(self, armed: Armed) -> type[Interrupt] | None:
        """Forbid what `arm` allowed, drop a pending interrupt, and return which one was raised, if any.

        A coroutine that ends late does not touch what its thread is doing by then.
        """
        with self._lock:
            if self._armed.get(armed.thread_id) is armed:
                del self._armed[armed.thread_id]
                if armed.fired is not None:
                    _set_async_exc(ctypes.c_ulong(armed.thread_id), None)
            return armed.fired

    def fire_due(self, interrupt: type[Interrupt]) -> list[int]:
        """Interrupt the threads whose deadline is over; return their ids."""
        now = time.monotonic()
        return self._fire(interrupt, lambda armed: now >= armed.deadline)

    def fire_all(self, interrupt: type[Interrupt]) -> list[int]:
        """Interrupt every thread that may be interrupted; return their ids."""
        return self._fire(interrupt, lambda _armed: True)

    def _fire(self, interrupt: type[Interrupt], due: Callable[[Armed], bool]) -> list[int]:
        hit = []
        with self._lock:
            for thread_id, armed in self._armed.items():
                if armed.fired is None and not armed.is_shielded and due(armed):
                    armed.fired = interrupt
                    _set_async_exc(ctypes.c_ulong(thread_id), ctypes.py_object(interrupt))
                    hit.append(thread_id)
        return hit
