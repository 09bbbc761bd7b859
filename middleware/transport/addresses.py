"""Which nodes does a broker URL name, and how long may each of them be silent?"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import pika

from ..errors import ConfigurationError

HEARTBEAT_SECONDS: Final = 30
OPEN_SECONDS: Final = 10.0


def parse_urls(urls: str) -> list[pika.URLParameters]:
    """Read one or more broker URLs, separated by `;`.

    Raises:
        ConfigurationError: a URL is not an AMQP URL.
    """
    found = [_parse(url.strip()) for url in urls.split(";") if url.strip()]
    if not found:
        raise ConfigurationError(
            "expected a broker URL such as amqp://user:password@host:5672/%2F, got: nothing"
        )
    return found


def _parse(url: str) -> pika.URLParameters:
    if urlsplit(url).scheme not in {"amqp", "amqps"}:
        raise ConfigurationError(
            f"expected the broker URL to start with amqp:// or amqps://, got: {urlsplit(url).scheme + '://…'!r}"
        )
    try:
        parameters = pika.URLParameters(url)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"expected a broker URL such as amqp://user:password@host:5672/%2F; {error}"
        ) from None
    if "heartbeat" not in url:
        parameters.heartbeat = HEARTBEAT_SECONDS
    parameters.stack_timeout = OPEN_SECONDS
    parameters.socket_timeout = OPEN_SECONDS
    parameters.connection_attempts = 1
    return parameters


def describe_address(parameters: pika.connection.Parameters) -> str:
    """Return an address for a log line, without its password."""
    return f"{parameters.host}:{parameters.port}, virtual host {parameters.virtual_host!r}"
