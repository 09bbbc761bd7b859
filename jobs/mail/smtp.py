"""How is an email handed to a mail server, and what does the server's answer mean?

What the server says of the email is the email's matter: 5xx is final, 4xx is worth another attempt. What it
says before it has heard of one (greeting, TLS, password), and every break of the connection, is no fault of
the email's and is tried again.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from dramatiq.errors import Retry

from middleware import Invalid, NotDone

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_PORTS: Final = {"smtp": 25, "starttls": 587, "smtps": 465}
_SHOWN: Final = 200
"""Characters kept of what the server says."""
_LOGIN: Final = {530, 534, 535, 538}
"""Answers that ask for another login, whenever they come. Source: RFC 4954, section 6."""


@dataclass(frozen=True)
class MailServer:
    """A mail server and how to talk to it.

    Attributes:
        host: its name or address.
        port: where it listens.
        security: `smtp` (none), `starttls` or `smtps`.
        user: who logs in, in ASCII; empty for nobody.
        password: the user's, in ASCII.
    """

    host: str
    port: int
    security: str
    user: str = ""
    password: str = field(default="", repr=False)


def read_server(url: str) -> MailServer:
    """Return the server that a URL names.

    Raises:
        ValueError: it is no such URL, or its user or password is beyond ASCII.

    >>> read_server("smtp://me:p%40ss@mail.example.com?starttls")
    MailServer(host='mail.example.com', port=587, security='starttls', user='me')
    """
    parts = urlsplit(url)
    is_known = (parts.scheme, parts.query) in (("smtp", ""), ("smtp", "starttls"), ("smtps", ""))
    if not is_known or not parts.hostname or parts.path.strip("/") or parts.fragment or parts.port == 0:
        raise ValueError("another scheme, no host, or more than that")
    if (parts.username is None) != (parts.password is None):
        raise ValueError("a user without a password")
    security = parts.query or parts.scheme
    port = _PORTS[security] if parts.port is None else parts.port
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not (user + password).isascii():  # smtplib encodes them as ASCII, and raises at the first email
        raise ValueError("a user or password beyond ASCII")
    return MailServer(parts.hostname, port, security, user, password)


def deliver(email: EmailMessage, server: MailServer, *, timeout_seconds: float) -> None:
    """Return when the server has accepted an email for all its recipients; one connection for each email.

    Parameters:
        email: with From and To.
        server: who takes it.
        timeout_seconds: for each answer of the server.

    Raises:
        NotDone: not accepted: 4xx, or a session or connection that broke before the text was handed over.
        Retry: perhaps accepted: the text was handed over, and no answer to it can be understood.
        Invalid: not accepted, and never will be: 5xx, or an address that this server cannot take.
    """
    with _session(server, timeout_seconds) as connection:
        try:
            connection.send_message(email)
        except smtplib.SMTPRecipientsRefused as refused:
            raise _meaning(*next(iter(refused.recipients.values())), sent=False) from refused
        except smtplib.SMTPSenderRefused as refused:
            raise _meaning(refused.smtp_code, refused.smtp_error, sent=False) from refused
        except smtplib.SMTPDataError as refused:
            raise _meaning(refused.smtp_code, refused.smtp_error, sent=connection.has_text) from refused
        except smtplib.SMTPNotSupportedError as refused:
            raise Invalid(f"the mail server takes no such address: {refused}") from refused
        except OSError as error:
            raise _broken(error, sent=connection.has_text) from error


@contextmanager
def _session(server: MailServer, timeout_seconds: float) -> Iterator[_Plain]:
    """Yield a connection that is encrypted and logged in as the URL asks."""
    with ExitStack() as opened:  # closes it however this ends, also when a time limit interrupts the login
        try:
            connection = opened.enter_context(closing(_connect(server, timeout_seconds)))
            if server.security == "starttls":
                connection.starttls(context=ssl.create_default_context())
            if server.user:
                connection.login(server.user, server.password)
            connection.ehlo_or_helo_if_needed()
        except OSError as error:  # all of smtplib's errors are
            raise _broken(error, sent=False) from error
        yield connection
        # The answer does not matter any more: an email that was accepted must not fail, and be sent again,
        # because a goodbye went wrong.
        with suppress(OSError):
            connection.putcmd("QUIT")


def _connect(server: MailServer, timeout_seconds: float) -> _Plain:
    address, name = (server.host, server.port), _own_name()
    if server.security != "smtps":
        return _Plain(*address, local_hostname=name, timeout=timeout_seconds)
    context = ssl.create_default_context()
    return _Encrypted(*address, local_hostname=name, timeout=timeout_seconds, context=context)


class _Plain(smtplib.SMTP):
    """Takes any 2xx for a yes to the text: smtplib takes all but 250 for a no, and a retry sends a copy.

    Source: RFC 5321, section 4.2.1, on codes that a client does not expect.

    Attributes:
        has_text: the server may have got the email's text.
    """

    has_text = False

    def data(self, msg: Buffer | str) -> tuple[int, bytes]:
        self.has_text = True
        code, text = super().data(msg)
        return 250 if 200 <= code <= 299 else code, text


class _Encrypted(_Plain, smtplib.SMTP_SSL):
    """The same with TLS from the start."""


@cache
def _own_name() -> str:
    """Return what EHLO says; asked once, because smtplib asks the name service for every connection."""
    name = socket.getfqdn()
    return name if "." in name else "[127.0.0.1]"


def _meaning(code: int, text: bytes | str, *, sent: bool) -> Exception:
    """Return what an answer about the email means for its job; `sent`: it has got the text."""
    answer = f"the mail server answers {_shown(code, text)}"
    if 500 <= code <= 599 and code not in _LOGIN:
        return Invalid(answer)
    return Retry(answer) if sent and not 400 <= code <= 599 else NotDone(answer)


def _broken(error: OSError, *, sent: bool) -> Exception:
    if isinstance(error, smtplib.SMTPResponseException):
        return _not_now(f"the mail server answers {_shown(error.smtp_code, error.smtp_error)}", sent)
    return _not_now(f"the mail server is not reached: {type(error).__name__}: {error}"[:_SHOWN], sent)


def _not_now(text: str, sent: bool) -> Exception:
    return Retry(text) if sent else NotDone(text)


def _shown(code: int, text: bytes | str) -> str:
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(words.split())}"[:_SHOWN]
