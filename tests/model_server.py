"""An OpenAI-compatible HTTP API of a test's own: it answers what it is told, and remembers what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final


@dataclass(frozen=True)
class Answer:
    """A reply.

    Attributes:
        status: HTTP's; 0 closes the connection instead.
        body: sent as it is if it is bytes, else as JSON.
        headers: besides the length, or with another one.
    """

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def said(text: str) -> Answer:
    """Return the reply of a model that says something."""
    return Answer(200, {"choices": [{"message": {"role": "assistant", "content": text}}]})


HANG_UP: Final = Answer(0)


@dataclass(frozen=True)
class Request:
    """What somebody asked."""

    path: str
    headers: dict[str, str]
    body: Any


class ModelServer(ThreadingHTTPServer):
    """The server.

    Attributes:
        answers: what it replies, in this order; the last one is repeated.
        requests: what it was asked, oldest first.
        connections: how many there were.
        meanwhile: called before each reply.
        gone: for `meanwhile` to wait on; set when the server ends.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.answers: list[Answer] = [said("a summary")]
        self.requests: list[Request] = []
        self.connections = 0
        self.gone = threading.Event()
        self.meanwhile: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        """The API's base address."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Call(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Request(self.path, headers, json.loads(body)))
        self.server.meanwhile()
        answers = self.server.answers
        self._reply(answers.pop(0) if len(answers) > 1 else answers[0])

    def _reply(self, answer: Answer) -> None:
        if answer == HANG_UP:
            self.close_connection = True
            return
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in ({"Content-Length": str(len(body))} | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the requests are the log."""


@contextmanager
def serve_model() -> Iterator[ModelServer]:
    """Run a server in a thread while the block runs."""
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.gone.set()
        server.shutdown()
        server.server_close()
        thread.join()
