"""Which URLs may a setting hold? Those that whoever connects to them reads: one rule for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from ..store import Store
from ..transport.addresses import parse_urls
from ..transport.management import Management
from .values import Refusal

INLINE: Final = "inline://"
"""The broker URL that means: in this process, without a server."""


def read_by(read: Callable[[str], str], rule: str, way_out: str) -> BeforeValidator:
    """Return a check for what `read` takes, and whose result it returns.

    Parameters:
        read: raises a ValueError for what it does not take.
        rule: completes "expected JOBS_X to be …".
        way_out: what to do about it.
    """

    def check(value: object) -> object:
        try:
            return read(str(value).strip())
        except (ValueError, SyntaxError):  # the second by pika, of options that it reads as Python
            raise Refusal(rule, way_out) from None

    return BeforeValidator(check)


def _broker(text: str) -> str:
    if text != INLINE and not parse_urls(text):
        raise ValueError("no address at all")
    return ";".join(url.strip() for url in text.split(";") if url.strip())


def _database(text: str) -> str:
    Store(text)  # connects on first use
    return text


def _management(text: str) -> str:
    Management(text, vhost="/")  # connects when it is asked
    return _http(text)


def _http(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("another scheme, no host, or no port")
    return text.rstrip("/")


BROKER_URL: Final = read_by(
    _broker,
    f"{INLINE} or amqp://user:password@host:port/vhost, several separated by ';'",
    f"use {INLINE} to run without a server, or `make services` to get RabbitMQ and a .env file",
)
DATABASE_URL: Final = read_by(
    _database,
    "postgresql+psycopg://user:password@host:port/database or sqlite:///file",
    "name the driver as shown and, for SQLite, a file (threads do not share a database in memory)",
)
MANAGEMENT_URL: Final = read_by(
    _management,
    "an http:// or https:// URL with a host",
    "write it like http://user:password@127.0.0.1:15672",
)
HTTP_URL: Final = read_by(
    _http,
    "an http:// or https:// URL with a host",
    "write it like http://127.0.0.1:8080",
)
