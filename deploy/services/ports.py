"""Which ports are free?"""

import random
import socket
from contextlib import ExitStack
from typing import Final

from deploy.services.endpoints import Ports
from deploy.services.errors import CannotServe

# Below the range from which Linux takes the ports of outgoing connections (32768 and up), so that no
# passing connection holds a port in the moment a service wants it; above what services are known by.
RANGE: Final = range(20000, 32000)


def choose() -> Ports:
    """Six ports on which nothing listens, at random, so that two clones starting at once rarely collide.

    Raises `CannotServe` when a thousand tries find fewer.
    """
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(RANGE, 1000):
            listener = held.enter_context(socket.socket())
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == 6:
                return Ports(*found)
    raise CannotServe(f"expected six free ports in {RANGE.start}–{RANGE.stop}, got: {len(found)}")


def is_free(port: int) -> bool:
    """Whether a service could listen on this loopback port now."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
