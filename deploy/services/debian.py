"""The services from Debian's packages, as processes of our own."""

import os
import signal
from collections.abc import Sequence
from typing import Final

from deploy.services import packages, postgresql, rabbitmq
from deploy.services.engine import SERVICES, Engine
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance, say
from deploy.services.state import State

SUPPORTED_RABBITMQ: Final = (3, 10)
SUPPORTED_POSTGRESQL: Final = 13


class Debian(Engine):
    """One instance from Debian's packages. Needs root: to install, and to become the services' own users."""

    def __init__(self, instance: Instance, state: State) -> None:
        if os.geteuid() != 0:
            again = os.environ.get("INVOKED_AS", "make")  # set by the Makefile
            raise CannotServe(f"expected root or a Docker engine, got: neither; run: sudo {again}")
        self.instance = instance
        self.state = state
        self.rabbitmq = rabbitmq.RabbitMQ(instance, state)
        self.postgresql = postgresql.PostgreSQL(instance, state)

    def start(self, services: Sequence[str] = SERVICES) -> None:
        ensure_packages()
        self.instance.prepare()
        if not any(self.running().values()):
            self.stop()  # the port mapper of a crashed node
            self.state.take_free_ports()
        # Both boot side by side; saved in between, so that whatever happens then can still be ended.
        chosen = [each for each in (self.postgresql, self.rabbitmq) if each.name in services]
        try:
            for service in chosen:
                service.begin()
                self.state.save(self.instance.state_file)
            for service in chosen:
                service.wait()
        finally:
            self.state.save(self.instance.state_file)

    def stop(self, services: Sequence[str] = SERVICES) -> None:
        try:
            for service in (self.rabbitmq, self.postgresql):
                if service.name in services:
                    service.stop()
        finally:
            self.state.save(self.instance.state_file)

    def kill(self, service: str) -> None:
        try:
            (self.rabbitmq if service == "rabbitmq" else self.postgresql).stop(signal.SIGKILL)
        finally:
            self.state.save(self.instance.state_file)

    def rabbitmqctl(self, arguments: Sequence[str]) -> int:
        return self.rabbitmq.ctl(arguments)

    def remove(self) -> None:
        # Nothing that an orderly end would keep is needed any more.
        self.rabbitmq.stop(signal.SIGKILL)
        self.postgresql.stop(signal.SIGQUIT)
        self.instance.remove()

    def running(self) -> dict[str, bool]:
        return {name: self.state.running(name) is not None for name in SERVICES}

    def versions(self) -> str:
        found = ".".join(str(part) for part in rabbitmq.version() or ())
        return f"RabbitMQ {found}, PostgreSQL {postgresql.version()} from the system's packages"


def ensure_packages() -> None:
    """Install what is missing; refuse versions that the kit does not support."""
    missing = []
    if rabbitmq.version() is None:
        missing.append("rabbitmq-server")
    if postgresql.version() is None:
        missing.append("postgresql")
    if missing:
        say(f"Installing {' '.join(missing)} (no system instance is started)")
        packages.install(missing)
    broker, database = rabbitmq.version(), postgresql.version()
    if broker is None or broker < SUPPORTED_RABBITMQ:
        raise CannotServe(f"expected rabbitmq-server to be 3.10 or later, got: {broker}; use a Docker engine")
    if database is None or database < SUPPORTED_POSTGRESQL:
        raise CannotServe(f"expected postgresql to be 13 or later, got: {database}; use a Docker engine")
