"""What does RabbitMQ's HTTP API know that AMQP does not say? Policies, members, unacknowledged counts.

Needs JOBS_MANAGEMENT_URL.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import httpx

from ..errors import ConfigurationError, JobsError
from .policies import Policy, read_policies

_TIMEOUT_SECONDS: Final = 5.0
_COLUMNS: Final = "name,messages_ready,messages_unacknowledged,messages_dlx,members"


class ManagementError(JobsError):
    """The HTTP API is not reachable or refuses."""


class Management:
    """A client of the HTTP API.

    Parameters:
        url: its address with user and password, such as http://guest:guest@127.0.0.1:15672.
        vhost: the virtual host that the kit's queues live in.

    Raises:
        ConfigurationError: the address is not an HTTP URL.
    """

    def __init__(self, url: str, vhost: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError(
                "expected JOBS_MANAGEMENT_URL to be an address such as http://user:password@host:15672, "
                f"got: {parts.scheme + '://…'!r}"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._base = (
            f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"
        )
        self._auth = (unquote(parts.username or "guest"), unquote(parts.password or "guest"))
        self._vhost = quote(vhost, safe="")
        logging.getLogger("httpx").addFilter(self._is_foreign)

    def _is_foreign(self, record: logging.LogRecord) -> bool:
        """Keep httpx's line per request out of the log for these requests only."""
        return self._base not in record.getMessage()

    def queues(self) -> dict[str, dict[str, Any]]:
        """Return the virtual host's queues by name.

        Raises:
            ManagementError: no answer, or not allowed.
        """
        answer = self._get(f"/api/queues/{self._vhost}", {"columns": _COLUMNS})
        return {queue["name"]: queue for queue in answer}

    def policies(self) -> list[Policy]:
        """Return the virtual host's policies.

        Raises:
            ManagementError: no answer, or not allowed.
        """
        users = self._get(f"/api/policies/{self._vhost}", {})
        operators = self._get(f"/api/operator-policies/{self._vhost}", {})
        return read_policies(users, is_operator=False) + read_policies(operators, is_operator=True)

    def bindings(self, exchange: str) -> set[tuple[str, str]]:
        """Return where an exchange leads: queue and routing key.

        Raises:
            ManagementError: no answer, no such exchange, or not allowed.
        """
        name = quote(exchange, safe="")
        answer = self._get(f"/api/exchanges/{self._vhost}/{name}/bindings/source", {})
        return {(each["destination"], each["routing_key"]) for each in answer}

    def nodes(self) -> int:
        """Return how many nodes the cluster has.

        Raises:
            ManagementError: no answer, or not allowed: it takes the tag `monitoring`.
        """
        return len(self._get("/api/nodes", {"columns": "name"}))

    def _get(self, path: str, params: dict[str, str]) -> Any:
        try:
            response = httpx.get(self._base + path, params=params, auth=self._auth, timeout=_TIMEOUT_SECONDS)
            response.raise_for_status()
            return response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ManagementError(f"RabbitMQ's management API at {self._base}: {error}") from error


def few_members(queues: dict[str, dict[str, Any]], names: Iterable[str], nodes: int) -> list[str]:
    """Return the names of queues with fewer members than min(3, nodes)."""
    wanted = min(3, nodes)
    return [name for name in names if name in queues and len(queues[name].get("members") or []) < wanted]
