"""What does an exception say about the call that raised it: did nothing happen, or may something have?

Pure, and by name: a client library that is not installed is not imported. The first link in an exception's
chain of explicit causes that a rule knows decides; where no rule knows any, something may have happened.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final

from ..errors import BusinessReject, Invalid, NotDone, Snooze

_NOTHING: Final = (
    *(NotDone, Invalid, BusinessReject, Snooze),  # the actor itself says so
    *(ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError),
)
_SOMETHING: Final = (TimeoutError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)

_NOTHING_BY_NAME: Final = frozenset(
    {
        # There was no connection to send anything on.
        *("httpx.ConnectError", "httpx.ConnectTimeout", "httpx.PoolTimeout"),
        *("httpx.UnsupportedProtocol", "httpx.InvalidURL"),
        *("httpcore.ConnectError", "httpcore.ConnectTimeout", "httpcore.PoolTimeout"),
        *(
            "requests.ConnectTimeout",
            "requests.InvalidURL",
            "requests.InvalidSchema",
            "requests.MissingSchema",
        ),
        *("urllib3.NewConnectionError", "urllib3.NameResolutionError", "urllib3.ConnectTimeoutError"),
        *("aiohttp.ClientConnectorError", "aiohttp.ConnectionTimeoutError", "aiohttp.InvalidURL"),
        # The mail server had not got the text yet.
        *("smtplib.SMTPRecipientsRefused", "smtplib.SMTPSenderRefused", "smtplib.SMTPNotSupportedError"),
        *("smtplib.SMTPConnectError", "smtplib.SMTPHeloError", "smtplib.SMTPAuthenticationError"),
    }
)
"""Top package and class; a subclass is what its class is."""

_STATUS: Final = {
    "urllib.HTTPError": ("code", range(400, 500)),
    "aiohttp.ClientResponseError": ("status", range(400, 500)),
    "smtplib.SMTPDataError": ("smtp_code", range(400, 600)),
}
"""Classes that carry a reply's status: where, and which are refusals. Others carry the HTTP reply itself."""


def may_have_happened(error: BaseException) -> bool:
    """Whether a call that ended with this exception may have had an effect.

    >>> may_have_happened(ConnectionRefusedError())
    False
    >>> may_have_happened(TimeoutError())
    True
    """
    for each in _chain(error):
        said = _says(each)
        if said is not None:
            return said
    return True


def _says(error: BaseException) -> bool | None:
    """Return what one exception says, None if no rule knows it."""
    if isinstance(error, _NOTHING):
        return False
    names = _names(error)
    refused = _is_refused(error, names)
    if refused is not None:
        return not refused
    if names & _NOTHING_BY_NAME:
        return False
    return True if isinstance(error, _SOMETHING) else None


def _names(error: BaseException) -> frozenset[str]:
    classes = type(error).__mro__
    return frozenset(f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in classes)


def _is_refused(error: BaseException, names: frozenset[str]) -> bool | None:
    """Whether the server refused the request; None if the error carries no reply."""
    for name in names & _STATUS.keys():
        attribute, refusals = _STATUS[name]
        return getattr(error, attribute, None) in refusals
    status = getattr(getattr(error, "response", None), "status_code", None)
    return 400 <= status <= 499 if isinstance(status, int) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, what it wraps, and what it was explicitly raised from, each once."""
    seen: set[int] = set()
    left: list[Any] = [error]
    while left:
        current = left.pop()
        if isinstance(current, BaseException) and id(current) not in seen:
            seen.add(id(current))
            yield current
            left += [current.__cause__, *_wrapped(current)]


def _wrapped(error: BaseException) -> list[Any]:
    """Return what requests, urllib3 and urllib keep inside an exception instead of raising from it."""
    inner = [getattr(error, "reason", None)]
    if _names(error) & {"requests.RequestException", "urllib3.HTTPError"}:
        inner += error.args
    return inner
