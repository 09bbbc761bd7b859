"""A payment provider on this machine: charges once for each idempotency key, however often it is asked to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import unquote

HANG_UP: Final = 0
"""Stands for a connection that is closed after the charge, without a reply."""


class PaymentProvider(ThreadingHTTPServer):
    """A running server, what it is told and what it has seen.

    Attributes:
        charges: idempotency key → amount charged.
        calls: the key of each request to charge, oldest first.
        answers: statuses to reply with, in this order; then 200. All but 200 and `HANG_UP` charge nothing.
        meanwhile: called before each reply to a charge, when the charge is made.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.charges: dict[str, int] = {}
        self.calls: list[str] = []
        self.answers: list[int] = []
        self.meanwhile: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Call(BaseHTTPRequestHandler):
    server: PaymentProvider
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        amount = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["amount"]
        key = self.headers["Idempotency-Key"]
        self.server.calls.append(key)
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status in (200, HANG_UP):
            self.server.charges.setdefault(key, amount)
        self.server.meanwhile()
        if status == HANG_UP:
            self.close_connection = True
        else:
            self._reply(status, key)

    def do_GET(self) -> None:
        key = unquote(self.path.rpartition("/")[2])
        self._reply(200 if key in self.server.charges else 404, key)

    def _reply(self, status: int, key: str) -> None:
        body = json.dumps({"id": f"charge of {key}"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serve_payments() -> Iterator[PaymentProvider]:
    """Run a provider in a thread while the block runs."""
    server = PaymentProvider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
