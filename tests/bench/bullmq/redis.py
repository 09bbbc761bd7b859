"""A Redis server for one measurement, on this machine only."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.processes import started, wait_for


@contextmanager
def redis(folder: Path, fsync: str) -> Iterator[int]:
    """Start a server, hand out its port, and end it.

    Parameters:
        folder: where its data lie.
        fsync: `appendfsync`: `always` or `everysec`.
    """
    port, log = _free_port(), folder / "log"
    network = ["--bind", "127.0.0.1", "--port", str(port)]
    durability = ["--appendonly", "yes", "--appendfsync", fsync, "--save", "", "--dir", str(folder)]
    with started(["redis-server", *network, *durability], os.environ, log) as server:
        wait_for(lambda: _answers(port), "Redis to answer", server, log)
        yield port


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(port: int) -> bool | None:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG") or None
    except OSError:
        return None
