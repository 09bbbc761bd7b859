"""How is one command at a time let through?"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.services.errors import CannotServe


@contextlib.contextmanager
def hold(path: Path, seconds: float, busy: str) -> Iterator[None]:
    """Be the only one that holds this file. A killed holder holds nothing.

    Parameters:
        path: the file; it is gone afterwards.
        seconds: how long to wait for another one's end; zero to not wait.
        busy: what to say when that was not enough.

    Raises:
        CannotServe: with the text `busy`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    while (held := _lock(path)) is None:
        if time.monotonic() >= deadline:
            raise CannotServe(busy)
        time.sleep(0.1)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(held)


def _lock(path: Path) -> int | None:
    """Create and lock the file, without waiting; None if another has it, or its holder just removed it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
