"""How does a test lose a connection at one exact message? With a proxy that reads what the client sends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

CHUNK = 65536


class CuttingProxy:
    """A TCP proxy on loopback in front of one server.

    Parameters:
        host: the server's.
        port: the server's.

    Attributes:
        port: where it listens.
        cut_before: bytes that are not let through: the connection is lost as the client sends them.
        cut_after: bytes that reach the server: the connection is lost when it answers.
        on_cut: called when a connection is lost in one of these ways.
    """

    def __init__(self, host: str, port: int) -> None:
        self.cut_before: bytes | None = None
        self.cut_after: bytes | None = None
        self.on_cut: Callable[[], None] = lambda: None
        self._server = (host, port)
        self._sockets: list[socket.socket] = []
        self._cutting = threading.Lock()
        self._losing: set[socket.socket] = set()
        self._lost: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def is_armed(self) -> bool:
        """Whether a connection is yet to be lost."""
        return self.cut_before is not None or self.cut_after is not None

    def refuse(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def close(self) -> None:
        """Close all connections."""
        self.refuse()
        self._threads[0].join(10)
        for each in self._sockets:
            _end(each)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._sockets += [client, server]
            for pump in (self._to_server, self._to_client):
                thread = threading.Thread(target=pump, args=(client, server))
                self._threads.append(thread)
                thread.start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                if self.cut_before is not None and self.cut_before in data:
                    self.cut_before = None
                    with self._cutting:
                        self._lost.add(client)
                        self.on_cut()
                    break
                if self.cut_after is not None and self.cut_after in data:
                    self.cut_after = None
                    self._losing.add(client)
                server.sendall(data)
        self._part(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                with self._cutting:  # the client learns of its loss when `on_cut` has returned
                    if client in self._losing:
                        self._losing.discard(client)
                        self._lost.add(client)
                        self.on_cut()
                    if client in self._lost:
                        break
                client.sendall(data)
        self._part(client, server)

    def _part(self, client: socket.socket, server: socket.socket) -> None:
        with self._cutting:
            for each in (client, server):
                _end(each)


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
