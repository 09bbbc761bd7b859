"""The services from Debian's packages, as processes of our own."""

import os
import platform
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.services import packages, postgresql, rabbitmq
from deploy.services.chroot import Chroot
from deploy.services.engine import SERVICES, Engine
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance, say
from deploy.services.programs import Programs, System, version, written
from deploy.services.state import State

SUPPORTED_POSTGRESQL: Final = 13


class Debian(Engine):
    """One instance from Debian's packages. Needs root: to install, and to become the services' own users."""

    def __init__(self, instance: Instance, state: State) -> None:
        if os.geteuid() != 0:
            again = os.environ.get("INVOKED_AS", "make")  # set by the Makefile
            raise CannotServe(f"expected root or a Docker engine, got: neither; run: sudo {again}")
        self.instance = instance
        self.state = state
        self.programs = rabbitmq_programs(state.rabbitmq, instance.home, version(), release())
        self.rabbitmq = rabbitmq.RabbitMQ(instance, state, self.programs)
        self.postgresql = postgresql.PostgreSQL(instance, state)

    def start(self, services: Sequence[str] = SERVICES) -> None:
        ensure_packages(self.programs)
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
        found = f"RabbitMQ {written(self.programs.version() or ())}"
        if self.programs.origin != System.origin:
            found += f" from {self.programs.origin}"
        return f"{found}, PostgreSQL {postgresql.version()} from {System.origin}"


def rabbitmq_programs(
    asked: int | None, home: Path, installed: tuple[int, ...] | None, system: tuple[str, int]
) -> Programs:
    """What a node runs on: the system's package where it is new enough, on Debian 12 a chroot.

    Parameters:
        asked: the oldest major version that will do; None for what the system has.
        home: the folder of all instances.
        installed: the version of the system's package, None if it is not there yet.
        system: its name and major version.
    """
    if asked is None:
        return System()
    name, number = system
    if (installed or ()) >= (asked,) or (installed is None and name == "debian" and number > 12):
        return System((asked,))
    if system == ("debian", 12):
        return Chroot(home)
    raise CannotServe(
        f"expected a Docker engine, Debian 12 or later, or rabbitmq-server {asked}, "
        f"got: none of them on {name} {number}; start Docker"
    )


def release() -> tuple[str, int]:
    """The system's name and major version; Debian's testing and unstable have none, and come last."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return "an unknown system", 0
    number = found.get("VERSION_ID", "99").partition(".")[0]
    return found["ID"], int(number) if number.isdigit() else 0


def ensure_packages(programs: Programs) -> None:
    """Install what is missing; refuse versions that the kit does not support."""
    missing = programs.missing()
    if postgresql.version() is None:
        missing.append("postgresql")
    if missing:
        say(f"Installing {' '.join(missing)} (no system instance is started)")
        packages.install(missing)
    programs.ensure()
    database = postgresql.version()
    if database is None or database < SUPPORTED_POSTGRESQL:
        raise CannotServe(f"expected postgresql to be 13 or later, got: {database}; use a Docker engine")
