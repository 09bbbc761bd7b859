"""How does a test cut or freeze a connection at the moment it wants? A TCP proxy on this machine."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_POLL_SECONDS: Final = 0.02
_CHUNK: Final = 64 * 1024


class Proxy:
    """Passes bytes on between its own port and a server, until it is told otherwise.

    Parameters:
        url: the server's address.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5672)
        self._listener = socket.create_server(("127.0.0.1", 0))
        login = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{self._listener.getsockname()[1]}"))
        self.holds_requests = threading.Event()
        """Set: what the client sends waits here."""
        self.holds_answers = threading.Event()
        """Set: what the server sends waits here."""
        self.refuses = threading.Event()
        """Set: new connections are closed at once."""
        self.largest_answer = _CHUNK
        """What the server sends is passed on in pieces of so many bytes at most."""
        self.accepted = 0
        """How many connections were passed on."""
        self.refused = 0
        """How many connections were closed at once."""
        self.pieces = 0
        """In how many pieces the clients' bytes came."""
        self._closing = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, name="test-proxy")]
        self._threads[0].start()

    def drop(self) -> None:
        """Reset every connection that stands now; what waits here is lost."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more connections and end those that stand."""
        self._closing.set()
        self._threads[0].join()
        self._listener.close()
        self.drop()
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while not self._closing.is_set():
            if not select.select([self._listener], [], [], _POLL_SECONDS)[0]:
                continue
            client, _address = self._listener.accept()
            if self.refuses.is_set():
                self.refused += 1
                client.close()
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self.accepted += 1
            with self._lock:
                self._pairs.append((client, server))
            thread = threading.Thread(target=self._serve, args=(client, server), name="test-proxy-connection")
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError):
            while True:
                sources = {client: True, server: False}
                open_ways = [each for each, is_client in sources.items() if not self._is_held(is_client)]
                for source in select.select(open_ways, [], [], _POLL_SECONDS)[0]:
                    if self._is_held(source is client):
                        continue
                    data = source.recv(_CHUNK if source is client else self.largest_answer)
                    if not data:
                        return
                    self.pieces += source is client
                    (server if source is client else client).sendall(data)
                if len(open_ways) < len(sources) and self._is_dropped(client):
                    return

    def _is_held(self, is_client: bool) -> bool:
        return (self.holds_requests if is_client else self.holds_answers).is_set()

    def _is_dropped(self, client: socket.socket) -> bool:
        with self._lock:
            return all(client is not each for each, _server in self._pairs)
