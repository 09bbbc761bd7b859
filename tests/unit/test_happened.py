"""Is it told apart whether a call that failed did nothing, or may have done something?"""

from __future__ import annotations

import smtplib
import socket
import ssl
import sys
import urllib.error
from email.message import Message
from typing import Any

import httpx
import pytest
from dramatiq.errors import Retry
from dramatiq.middleware import Shutdown, TimeLimitExceeded

from middleware import BusinessReject, Invalid, NotDone
from middleware.effects.happened import may_have_happened


def replied(status: int) -> httpx.HTTPStatusError:
    """Return what httpx raises for a reply."""
    request = httpx.Request("POST", "http://127.0.0.1/charges")
    return httpx.HTTPStatusError("x", request=request, response=httpx.Response(status, request=request))


def caused(error: Exception, cause: BaseException) -> Exception:
    """Return an exception that was raised from another."""
    error.__cause__ = cause
    return error


def foreign(
    package: str, name: str, *args: Any, base: type[Exception] = Exception, **fields: Any
) -> Exception:
    """Return an exception of a package that need not be installed."""
    kind = type(name, (base,), {"__module__": f"{package}.exceptions", **fields})
    made: Exception = kind(*args)
    return made


REQUESTS = type(foreign("requests", "RequestException", base=OSError))
REFUSED = ConnectionRefusedError("refused")
NOTHING: list[BaseException] = [
    NotDone("x"),
    Invalid("x"),
    BusinessReject("x"),
    REFUSED,
    socket.gaierror("no such host"),
    ssl.SSLCertVerificationError("self-signed"),
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.PoolTimeout("busy"),
    httpx.UnsupportedProtocol("ftp"),
    *(replied(status) for status in (400, 402, 409, 422, 429)),
    urllib.error.URLError(REFUSED),
    urllib.error.HTTPError("http://x", 404, "no", Message(), None),
    smtplib.SMTPRecipientsRefused({"a@b": (550, b"no")}),
    smtplib.SMTPSenderRefused(451, b"later", "a@b"),
    smtplib.SMTPDataError(552, b"too large"),
    smtplib.SMTPAuthenticationError(535, b"no"),
    smtplib.SMTPConnectError(421, b"no"),
    caused(Retry("later"), REFUSED),
    caused(Retry("later", delay=1000), NotDone("throttled")),
    caused(ValueError("x"), caused(RuntimeError("y"), replied(400))),
    foreign("requests", "ConnectTimeout"),
    foreign(
        "requests", "ConnectionError", foreign("urllib3", "MaxRetryError", reason=REFUSED), base=REQUESTS
    ),
    foreign("aiohttp", "ClientConnectorDNSError", base=type(foreign("aiohttp", "ClientConnectorError"))),
    foreign("aiohttp", "ClientResponseError", status=403),
]
SOMETHING: list[BaseException] = [
    TimeoutError("no answer"),
    ConnectionResetError("reset"),
    BrokenPipeError("pipe"),
    TimeLimitExceeded(),
    Shutdown(),
    SystemExit(1),
    ValueError("cannot read the reply"),
    Retry("later"),
    httpx.ReadTimeout("no answer"),
    httpx.WriteTimeout("stuck"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("hung up"),
    *(replied(status) for status in (500, 502, 503, 302)),
    urllib.error.URLError(ConnectionResetError()),
    urllib.error.HTTPError("http://x", 500, "no", Message(), None),
    smtplib.SMTPServerDisconnected("hung up"),
    smtplib.SMTPDataError(-1, b"gibberish"),
    smtplib.SMTPResponseException(500, "Line too long."),
    caused(Retry("later"), httpx.ReadTimeout("no answer")),
    caused(TimeoutError(), REFUSED),
    caused(replied(500), REFUSED),
    foreign("requests", "ReadTimeout"),
    foreign("requests", "HTTPError", response=httpx.Response(500)),
    foreign("requests", "ConnectionError", ConnectionResetError(), base=REQUESTS),
    foreign("aiohttp", "ClientResponseError", status=500),
    foreign("somebody", "ConnectTimeout"),
]


@pytest.mark.parametrize("error", NOTHING, ids=repr)
def test_nothing_happened(error: BaseException) -> None:
    """No connection, a refusal, or the actor's own word: the call certainly had no effect."""
    assert not may_have_happened(error)


@pytest.mark.parametrize("error", SOMETHING, ids=repr)
def test_something_may_have_happened(error: BaseException) -> None:
    """No answer, a broken connection, a server's own error, or what no rule knows: it may have had one."""
    assert may_have_happened(error)


def test_what_was_only_being_handled_says_nothing() -> None:
    """A refused first call does not excuse a second one that failed in another way."""
    error = ValueError("of the second provider")
    error.__context__ = REFUSED
    assert may_have_happened(error)


def test_no_client_library_is_imported() -> None:
    """The rules know libraries by name alone."""
    assert not {"requests", "urllib3", "aiohttp"} & sys.modules.keys()


def test_a_circle_of_causes_ends() -> None:
    """An exception may be, in the end, its own cause."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert may_have_happened(first)
