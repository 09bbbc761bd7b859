"""How does a test wait for what another thread, process or server does? It polls a fact until a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_INTERVAL_SECONDS: Final = 0.02
_pause: Final = threading.Event()


def wait_until(fact: Callable[[], T], *, what: str, seconds: float = 20.0) -> T:
    """Poll until `fact` returns something true, and return that.

    Parameters:
        fact: asked again and again.
        what: names the fact in the failure.
        seconds: how long to wait. Defaults to 20 s.

    Raises:
        AssertionError: it did not become true in time; the text shows the last value.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = fact()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"expected {what} within {seconds:g} s, last seen: {found!r}")
        _pause.wait(_INTERVAL_SECONDS)


def stays(fact: Callable[[], object], *, what: str, seconds: float) -> None:
    """Poll for a while and fail as soon as `fact` returns something false.

    Parameters:
        fact: asked again and again.
        what: names the fact in the failure.
        seconds: how long it has to hold.

    Raises:
        AssertionError: it did not hold all the time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = fact()
        assert found, f"expected {what} for {seconds:g} s, got: {found!r}"
        _pause.wait(_INTERVAL_SECONDS)
