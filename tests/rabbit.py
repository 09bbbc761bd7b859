"""What does a test see of a broker from outside, and what does it do to it? One virtual host of RabbitMQ.

Everything goes through pika's own blocking adapter and the management API, not through the kit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import httpx
import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from .waiting import wait_until

_TIMEOUT_SECONDS: Final = 20.0
_PERSISTENT: Final = 2


class Letter(NamedTuple):
    """A message as it lies in a queue."""

    body: bytes
    properties: pika.BasicProperties
    redelivered: bool

    @property
    def headers(self) -> Mapping[str, Any]:
        """Its headers."""
        return self.properties.headers or {}


class Rabbit:
    """A virtual host of its own.

    Parameters:
        broker_url: a server's AMQP address.
        management_url: the same server's HTTP API, with user and password.
    """

    def __init__(self, broker_url: str, management_url: str) -> None:
        self.vhost = f"test-{uuid.uuid4().hex[:12]}"
        self.url = urlunsplit(urlsplit(broker_url)._replace(path="/" + self.vhost))
        self.management_url = management_url
        parts = urlsplit(management_url)
        self._user = unquote(parts.username or "guest")
        self._client = httpx.Client(
            base_url=f"{parts.scheme}://{parts.hostname}:{parts.port}/api/",
            auth=(self._user, unquote(parts.password or "guest")),
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )

    # --- the virtual host ---

    def create(self) -> None:
        """Create the virtual host and give this user all rights in it."""
        self._call("PUT", f"vhosts/{self.vhost}")
        self.restrict()

    def restrict(self, *, configure: str = ".*", write: str = ".*", read: str = ".*") -> None:
        """Restrict what this user may do to names that match; without arguments, to nothing less than all."""
        rights = {"configure": configure, "write": write, "read": read}
        self._call("PUT", f"permissions/{self.vhost}/{self._user}", json=rights)

    @property
    def version(self) -> str:
        """The broker's, such as 3.10.8."""
        return str(self._call("GET", "overview").json()["rabbitmq_version"])

    def is_since(self, *version: int) -> bool:
        """Whether the broker is of this version or a later one."""
        return tuple(int(part) for part in self.version.split(".")[:2]) >= version

    def delete(self) -> None:
        """Delete the virtual host with everything in it."""
        self._call("DELETE", f"vhosts/{self.vhost}")
        self._client.close()

    # --- through the management API ---

    def queue(self, name: str) -> dict[str, Any]:
        """Return what the API knows of a queue; empty if there is none."""
        response = self._client.get(f"queues/{self.vhost}/{quote(name, safe='')}")
        found: dict[str, Any] = {} if response.status_code == httpx.codes.NOT_FOUND else response.json()
        return found

    def queue_names(self) -> set[str]:
        """Return the names of all queues."""
        return {queue["name"] for queue in self._call("GET", f"queues/{self.vhost}?columns=name").json()}

    def set_policy(self, pattern: str, apply_to: str = "queues", /, **definition: Any) -> None:
        """Set a policy on queues whose name matches; underscores in names stand for hyphens."""
        body = {
            "pattern": pattern,
            "definition": {key.replace("_", "-"): value for key, value in definition.items()},
            "apply-to": apply_to,
        }
        self._call("PUT", f"policies/{self.vhost}/test", json=body)

    def delete_policy(self) -> None:
        """Remove the policy."""
        self._call("DELETE", f"policies/{self.vhost}/test")

    def wait_for_policy(self, queue: str, **definition: Any) -> None:
        """Wait until exactly this is in force on a queue; nothing given means no policy."""
        expected = {key.replace("_", "-"): value for key, value in definition.items()}
        wait_until(
            lambda: dict(self.queue(queue).get("effective_policy_definition") or {}) == expected,
            what=f"policy {expected} to be in force on {queue}",
        )

    def connections(self, containing: str = "") -> list[str]:
        """Return the connections whose client-provided name contains a text."""
        found = self._call("GET", f"vhosts/{self.vhost}/connections").json()
        return [each["name"] for each in found if containing in str(each.get("user_provided_name", ""))]

    def close_connections(self, containing: str) -> None:
        """Close connections as an operator may; waits until there is at least one."""
        names = wait_until(lambda: self.connections(containing), what=f"a connection named …{containing}…")
        for name in names:
            self._call("DELETE", f"connections/{quote(name, safe='')}")

    def _call(self, method: str, path: str, **content: Any) -> httpx.Response:
        response = self._client.request(method, path, **content)
        response.raise_for_status()
        return response

    # --- through AMQP ---

    @contextmanager
    def channel(self) -> Iterator[BlockingChannel]:
        """Open a connection and a channel; what it holds goes back when they close."""
        parameters = pika.URLParameters(self.url)
        parameters.client_properties = {"connection_name": "the test itself"}
        connection = pika.BlockingConnection(parameters)
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def ready(self, queue: str) -> int:
        """Return how many messages wait in a queue; -1 if there is no such queue."""
        found = self._declared(queue)
        return -1 if found is None else int(found.message_count)

    def consumers(self, queue: str) -> int:
        """Return how many consumers a queue has; -1 if there is no such queue."""
        found = self._declared(queue)
        return -1 if found is None else int(found.consumer_count)

    def _declared(self, queue: str) -> Any:
        with self.channel() as channel:
            try:
                return channel.queue_declare(queue, passive=True).method
            except pika.exceptions.ChannelClosedByBroker:
                return None

    def letters(self, queue: str) -> list[Letter]:
        """Look at a queue's messages and give them back."""
        found: list[Letter] = []
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue)
                if method is None or properties is None or body is None:
                    return found
                found.append(Letter(body, properties, method.redelivered))

    def wait_for_letters(self, queue: str, count: int = 1, seconds: float = 20.0) -> list[Letter]:
        """Wait until a queue holds at least so many messages, then look at them."""
        wait_until(lambda: self.ready(queue) >= count, what=f"{count} messages in {queue}", seconds=seconds)
        return self.letters(queue)

    def publish(
        self, queue: str, body: bytes, headers: dict[str, Any] | None = None, message_id: str | None = None
    ) -> None:
        """Publish as any AMQP client may, and wait for the confirm."""
        properties = pika.BasicProperties(delivery_mode=_PERSISTENT, headers=headers, message_id=message_id)
        with self.channel() as channel:
            channel.confirm_delivery()
            channel.basic_publish("", queue, body, properties, mandatory=True)

    def delete_queue(self, queue: str) -> None:
        """Delete a queue and what is in it."""
        with self.channel() as channel:
            channel.queue_delete(queue)
