"""An OpenAI-compatible API that fails and throttles, on this machine, and remembers what it answered.

What a chat meets is written in its id, `<temper>-<number>`; the tempers are listed in `SCRIPTS`.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

HANG_UP: Final = 0
"""Stands for a connection closed without an answer."""
SCRIPTS: Final = {
    "steady": (200,),
    "flaky": (500, 503, 200),
    "throttled": (429, 200),
    "silent": (HANG_UP, 200),
    "refused": (422,),
    "broken": (500,),
}
"""The answers a chat gets, call by call; the last one is repeated."""
RETRY_AFTER: Final = 1
"""Seconds that a throttled caller is asked to wait."""

_CHAT: Final = re.compile(rf"\b(?:{'|'.join(SCRIPTS)})-\d+\b")


def temper_of(chat_id: str) -> str:
    """Return what decides about a chat's answers."""
    return chat_id.rpartition("-")[0]


def summary_of(chat_id: str, messages: int) -> str:
    """Return what this provider says of a chat of so many messages."""
    return f"{chat_id} has {messages} messages"


class Provider(ThreadingHTTPServer):
    """The server and its tally: for each chat how often it gave which answer."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self._lock = threading.Lock()
        self._calls: defaultdict[str, Counter[int]] = defaultdict(Counter)

    @property
    def url(self) -> str:
        """Where it listens: loopback, a free port."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, chat_id: str) -> int:
        """Return the status of the chat's next answer and count it."""
        script = SCRIPTS.get(temper_of(chat_id), (404,))
        with self._lock:
            status = script[min(self._calls[chat_id].total(), len(script) - 1)]
            self._calls[chat_id][status] += 1
        return status

    def tally(self) -> dict[str, dict[int, int]]:
        """Return chat → status → number of answers."""
        with self._lock:
            return {chat: dict(counts) for chat, counts in self._calls.items()}


class _Call(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        lines = request["messages"][-1]["content"].splitlines()
        found = _CHAT.search("\n".join(lines))
        chat = found[0] if found and self.path == "/chat/completions" else self.path
        status = self.server.answer(chat)
        if status == HANG_UP:
            self.close_connection = True
        elif status == HTTPStatus.OK:
            said = {"role": "assistant", "content": summary_of(chat, len(lines))}
            self._reply(status, {"choices": [{"index": 0, "finish_reason": "stop", "message": said}]})
        else:
            self._reply(status, {"error": {"message": HTTPStatus(status).phrase}})

    def do_GET(self) -> None:
        self._reply(200, self.server.tally())

    def _reply(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", str(RETRY_AFTER))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tally is the log."""


@contextmanager
def serve() -> Iterator[Provider]:
    """Run a provider in a thread of its own while the block runs."""
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        provider.server_close()
        thread.join()
