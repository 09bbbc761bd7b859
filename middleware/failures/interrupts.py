"""How is a running job interrupted, without an interrupt that lands after it has finished?

An interrupt is an exception that CPython raises in another thread at its next bytecode; a call into C
delays it. It is raised and withdrawn under one lock, and only between `arm` and `disarm`, which enclose
the actor's function and nothing else: not the ledger's commit, not another middleware.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Final

from dramatiq.middleware import Interrupt

_set_async_exc: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc


class _Armed:
    __slots__ = ("deadline", "fired")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.fired: type[Interrupt] | None = None


class Interrupts:
    """The threads that may be interrupted now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[int, _Armed] = {}

    def arm(self, thread_id: int, seconds: float) -> None:
        """Allow interrupts of a thread and set its deadline, in seconds from now."""
        armed = _Armed(time.monotonic() + seconds)
        with self._lock:
            self._armed[thread_id] = armed

    def is_armed(self, thread_id: int) -> bool:
        """Whether a thread may be interrupted now."""
        return thread_id in self._armed

    def disarm(self, thread_id: int) -> None:
        """Forbid interrupts of a thread; nothing is pending in it afterwards.

        Raises:
            Interrupt: it was interrupted in the last moment: the job counts as interrupted.
        """
        fired = self.withdraw(thread_id)
        if fired is not None:
            raise fired()

    def withdraw(self, thread_id: int) -> type[Interrupt] | None:
        """Forbid interrupts of a thread, drop a pending one, and return which one was raised, if any."""
        with self._lock:
            armed = self._armed.pop(thread_id, None)
            if armed is None or armed.fired is None:
                return None
            _set_async_exc(ctypes.c_ulong(thread_id), None)
            return armed.fired

    def fire_due(self, interrupt: type[Interrupt]) -> list[int]:
        """Interrupt the threads whose deadline is over; return their ids."""
        now = time.monotonic()
        return self._fire(interrupt, lambda armed: now >= armed.deadline)

    def fire_all(self, interrupt: type[Interrupt]) -> list[int]:
        """Interrupt every thread that may be interrupted; return their ids."""
        return self._fire(interrupt, lambda _armed: True)

    def _fire(self, interrupt: type[Interrupt], due: Callable[[_Armed], bool]) -> list[int]:
        hit = []
        with self._lock:
            for thread_id, armed in self._armed.items():
                if armed.fired is None and due(armed):
                    armed.fired = interrupt
                    _set_async_exc(ctypes.c_ulong(thread_id), ctypes.py_object(interrupt))
                    hit.append(thread_id)
        return hit
