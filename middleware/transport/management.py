"""What does RabbitMQ's HTTP API know that AMQP does not say? Policies, members, unacknowledged counts.

Needs JOBS_MANAGEMENT_URL. Policies change a queue's behaviour silently and AMQP never shows them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import httpx

from ..errors import ConfigurationError, JobsError
from .topology import QueueDeclaration

_TIMEOUT_SECONDS: Final = 5.0
_FORBIDDEN: Final = ("message-ttl", "expires", "max-length", "max-length-bytes")
_COLUMNS: Final = (
    "name,messages_ready,messages_unacknowledged,members,policy,operator_policy,effective_policy_definition"
)


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

    def nodes(self) -> int:
        """Return how many nodes the cluster has."""
        return len(self._get("/api/nodes", {"columns": "name"}))

    def _get(self, path: str, params: dict[str, str]) -> Any:
        try:
            response = httpx.get(self._base + path, params=params, auth=self._auth, timeout=_TIMEOUT_SECONDS)
            response.raise_for_status()
            return response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ManagementError(f"RabbitMQ's management API at {self._base}: {error}") from error


def policy_conflicts(queues: dict[str, dict[str, Any]], declared: Iterable[QueueDeclaration]) -> list[str]:
    """Return one sentence for each effective policy that would break a promise of the kit.

    Parameters:
        queues: as `Management.queues` returns them.
        declared: the kit's queues.
    """
    return [
        sentence
        for declaration in declared
        if declaration.name in queues
        for sentence in _conflicts(queues[declaration.name], declaration)
    ]


def _conflicts(queue: dict[str, Any], declaration: QueueDeclaration) -> list[str]:
    definition = queue.get("effective_policy_definition") or {}
    policy = queue.get("operator_policy") or queue.get("policy") or "?"
    ours = declaration.arguments
    found = [
        f"queue {declaration.name!r}: expected no policy to set {key}, got: {definition[key]!r} "
        f"by policy {policy!r}; jobs would be dropped or refused: narrow the policy's pattern or remove it"
        for key in _FORBIDDEN
        if key in definition
    ]
    limit, declared = definition.get("delivery-limit"), ours.get("x-delivery-limit")
    if limit is not None and declared is not None and 0 <= limit < declared:
        found.append(
            f"queue {declaration.name!r}: expected delivery-limit to be {declared} as declared, got: {limit} "
            f"by policy {policy!r}, and the lower one counts: narrow the policy's pattern or remove it"
        )
    return found


def few_members(queues: dict[str, dict[str, Any]], names: Iterable[str], nodes: int) -> list[str]:
    """Return the names of queues with fewer members than min(3, nodes)."""
    wanted = min(3, nodes)
    return [name for name in names if name in queues and len(queues[name].get("members") or []) < wanted]
