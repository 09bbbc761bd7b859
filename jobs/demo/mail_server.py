"""A mail server that refuses and breaks off, on this machine, and keeps a journal of what it answered.

What an email meets is written in its recipient, `<temper>-<number>@…`; the tempers are listed in `SCRIPTS`.
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email import message_from_bytes
from pathlib import Path
from typing import Final

ACCEPTED: Final = 250
BREAK_OFF: Final = 0
"""Stands for a connection closed without an answer."""
SCRIPTS: Final = {
    "steady": (ACCEPTED,),
    "greylisted": (451, ACCEPTED),
    "silent": (BREAK_OFF, ACCEPTED),
    "unknown": (550,),
}
"""The answers a recipient gets, attempt by attempt; the last one is repeated."""

_TEXTS: Final = {ACCEPTED: "OK", 451: "Greylisted, try again later", 550: "No such user here"}


@dataclass(frozen=True)
class Answered:
    """A line of the journal.

    Attributes:
        user: the recipient's mailbox.
        status: what was answered.
        message_id: of the email; empty if it was not taken.
    """

    user: str
    status: int
    message_id: str = ""


def read_journal(file: Path) -> list[Answered]:
    """Return what was answered, oldest first."""
    return [Answered(**json.loads(line)) for line in file.read_text().splitlines()]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, journal: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self._lock = threading.Lock()
        self._attempts: Counter[str] = Counter()
        self._journal = journal.open("a")

    def answer(self, user: str) -> int:
        """Return the answer to the next attempt at a recipient."""
        script = SCRIPTS.get(user.rpartition("-")[0], (550,))
        with self._lock:
            self._attempts[user] += 1
            return script[min(self._attempts[user], len(script)) - 1]

    def note(self, answered: Answered) -> None:
        """Write a line of the journal."""
        with self._lock:
            self._journal.write(json.dumps(asdict(answered)) + "\n")
            self._journal.flush()

    def server_close(self) -> None:
        super().server_close()
        self._journal.close()


class _Session(socketserver.StreamRequestHandler):
    server: _Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        self._user = ""
        self._say("220 demo ESMTP")
        while line := self.rfile.readline():
            verb = line.split(b":")[0].strip().upper()
            if verb == b"QUIT":
                return
            if verb == b"RCPT TO":
                self._user = line.partition(b"<")[2].partition(b"@")[0].decode()
                status = self.server.answer(self._user)
                if status != ACCEPTED:
                    self.server.note(Answered(self._user, status))
                if status == BREAK_OFF:
                    return
                self._say(f"{status} {_TEXTS[status]}")
            elif verb == b"DATA":
                self._take()
            else:
                self._say("250 OK")

    def _take(self) -> None:
        self._say("354 go on")
        lines = list(iter(self.rfile.readline, b".\r\n"))
        email = message_from_bytes(b"".join(lines))
        self.server.note(Answered(self._user, ACCEPTED, str(email["Message-ID"])))
        self._say("250 OK")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def serve_mail(journal: Path) -> Iterator[str]:
    """Run a server in a thread while the block runs, and yield its URL."""
    server = _Server(journal)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"smtp://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
