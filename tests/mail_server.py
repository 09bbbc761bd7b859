"""A real SMTP server, aiosmtpd's, that a test can make refuse, break off or ask for a password."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, Final

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

BREAK_OFF: Final = ""
"""Stands for a connection that the server closes instead of answering."""


@dataclass
class MailServer:
    """What a running server is told and what it has seen.

    Attributes:
        answers: `MAIL`, `RCPT`, `DATA` or `QUIT` → what is answered there, in this order; then "250 OK".
        accepted: the emails that were accepted, oldest first.
        recipients: the envelope's recipient of each.
        bodies: its bytes.
        sessions: how often somebody connected.
        logins: user and password of each login.
        meanwhile: called before each answer to a text.
    """

    port: int = 0
    answers: dict[str, list[str]] = field(default_factory=dict)
    accepted: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    sessions: int = 0
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    def answer(self, server: SMTP, step: str) -> str:
        """Return the next answer of a step, or break the connection off."""
        script = self.answers.get(step)
        answer = script.pop(0) if script else "250 OK"
        if answer == BREAK_OFF:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return answer


class _Handler:
    """What aiosmtpd asks at each step."""

    def __init__(self, seen: MailServer) -> None:
        self._seen = seen

    async def handle_MAIL(  # noqa: N802  # the names are aiosmtpd's
        self, server: SMTP, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self._seen.answer(server, "MAIL")

    async def handle_RCPT(  # noqa: N802  # as above
        self, server: SMTP, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return self._seen.answer(server, "RCPT")

    async def handle_DATA(self, server: SMTP, _session: Any, envelope: Envelope) -> str:  # noqa: N802  # as above
        self._seen.meanwhile()
        answer = self._seen.answer(server, "DATA")
        if answer.startswith("2"):
            assert isinstance(envelope.content, bytes)
            email = message_from_bytes(envelope.content, policy=default)
            assert isinstance(email, EmailMessage)
            self._seen.bodies.append(envelope.content)
            self._seen.recipients.extend(envelope.rcpt_tos)
            self._seen.accepted.append(email)
        return answer

    async def handle_QUIT(self, server: SMTP, _session: Any, _envelope: Envelope) -> str:  # noqa: N802  # as above
        return self._seen.answer(server, "QUIT")


@contextmanager
def serve_mail(
    *,
    tls: ssl.SSLContext | None = None,
    implicit_tls: bool = False,
    passwords: dict[bytes, bytes] | None = None,
) -> Iterator[MailServer]:
    """Run a server in a thread while the block runs.

    Parameters:
        tls: what it encrypts with. Defaults to None, for a server that cannot.
        implicit_tls: whether it does so from the start, instead of at STARTTLS. Defaults to False.
        passwords: user → password, for a server that asks for a login. Defaults to none.
    """
    seen = MailServer()

    def authenticate(_server: SMTP, _session: Any, _envelope: Any, _mechanism: str, login: Any) -> AuthResult:
        assert isinstance(login, LoginPassword)
        seen.logins.append((login.login, login.password))
        is_right = (passwords or {}).get(login.login) == login.password
        return AuthResult(success=is_right, handled=False)

    def protocol() -> SMTP:
        seen.sessions += 1
        return SMTP(
            _Handler(seen),
            hostname="127.0.0.1",
            tls_context=None if implicit_tls else tls,
            require_starttls=tls is not None and not implicit_tls,
            auth_required=passwords is not None,
            auth_require_tls=False,
            authenticator=authenticate,
        )

    with _loop(protocol, tls if implicit_tls else None) as seen.port:
        yield seen


@contextmanager
def _loop(protocol: Callable[[], SMTP], tls: ssl.SSLContext | None) -> Iterator[int]:
    """Serve a protocol on a free port of loopback, in an event loop in a thread; yield the port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", 0, ssl=tls))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
