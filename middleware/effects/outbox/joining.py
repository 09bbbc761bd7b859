"""Does a send join the transaction that it is made in, or is it published now?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_is_now: Final[ContextVar[bool]] = ContextVar("jobs_publish_now", default=False)


@contextmanager
def publish_now() -> Iterator[None]:
    """Publish what the block sends at once, although a keyed actor runs: `with publish_now(): note.send()`.

    It is then sent whether the actor's effect is committed or not, and again with every attempt. In a
    coroutine it holds for that coroutine alone.
    """
    token = _is_now.set(True)
    try:
        yield
    finally:
        _is_now.reset(token)


def is_published_now() -> bool:
    """Whether the caller is in a block of `publish_now`."""
    return _is_now.get()
