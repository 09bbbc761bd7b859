"""Where does a benchmark run? In a virtual host and a database of its own, which nobody else uses."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx
import psycopg

from deploy.services import loopback
from deploy.services.errors import CannotServe

_NUMBERS: Final = itertools.count(1)


@dataclass(frozen=True)
class Services:
    """The addresses of a broker and a database on this machine.

    Attributes:
        broker_url: `amqp://`, of any virtual host.
        management_url: RabbitMQ's HTTP API with user and password.
        database_url: `postgresql+psycopg://`, of any database.
        scale: how much of a row's work is done: 1.0 for figures that count, less to try a row out.
    """

    broker_url: str
    management_url: str
    database_url: str
    scale: float = 1.0

    def scaled(self, amount: int) -> int:
        """Return how many of a row's jobs are to be run: `amount`, unless it is only tried out."""
        return max(1, round(amount * self.scale))

    @classmethod
    def given(cls, environment: Mapping[str, str], scale: float = 1.0) -> Services:
        """Return what `deploy.services run` has started.

        Raises:
            CannotServe: an address is missing, or leads to another machine.
        """
        found = loopback.given(environment) or {}
        names = ("JOBS_TEST_BROKER_URL", "JOBS_TEST_MANAGEMENT_URL", "JOBS_TEST_DATABASE_URL")
        missing = [name for name in names if name not in found]
        if missing:
            raise CannotServe(f"expected {', '.join(missing)} to be set, got: nothing; run `make bench`")
        broker_url, management_url, database_url = (found[name] for name in names)
        return cls(broker_url, management_url, database_url, scale)

    @contextmanager
    def virtual_host(self) -> Iterator[str]:
        """Create a virtual host, hand out its AMQP address, and delete it."""
        name = f"bench-{os.getpid()}-{next(_NUMBERS)}"
        self.manage("PUT", f"vhosts/{name}")
        user = quote(urlsplit(self.broker_url).username or "guest", safe="")
        self.manage("PUT", f"permissions/{name}/{user}", {"configure": ".*", "write": ".*", "read": ".*"})
        try:
            yield self.broker_url.rsplit("/", 1)[0] + "/" + name
        finally:
            self.manage("DELETE", f"vhosts/{name}")

    @contextmanager
    def database(self) -> Iterator[str]:
        """Create an empty database, hand out its SQLAlchemy address, and drop it."""
        name = f"bench_{os.getpid()}_{next(_NUMBERS)}"
        plain = self.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
            try:
                yield self.database_url.rsplit("/", 1)[0] + "/" + name
            finally:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def manage(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        """Call RabbitMQ's HTTP API, path without `/api/`; raises httpx.HTTPStatusError unless it is done."""
        parts = urlsplit(self.management_url)
        answer = httpx.request(
            method,
            f"{parts.scheme}://{parts.hostname}:{parts.port}/api/{path}",
            auth=(parts.username or "guest", parts.password or "guest"),
            json=dict(body or {}),
            timeout=60,
        )
        return answer.raise_for_status()
