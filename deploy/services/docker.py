"""The services from a Docker engine, as a Compose project of our own."""

import os
import subprocess
from collections.abc import Sequence

from deploy.services import readiness
from deploy.services.endpoints import DATABASE, USER
from deploy.services.engine import SERVICES, Engine
from deploy.services.errors import CannotServe
from deploy.services.instance import Instance, say
from deploy.services.state import State


def engine_answers() -> bool:
    """Whether an engine answers and has Compose: an installed client alone proves neither."""
    for question in (["info", "--format", "{{.ServerVersion}}"], ["compose", "version", "--short"]):
        try:
            reply = subprocess.run(["docker", *question], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return False
        if reply.returncode != 0 or not reply.stdout.strip():
            return False
    return True


class Docker(Engine):
    """One instance as a Compose project named after it, on ports of its own."""

    def __init__(self, instance: Instance, state: State) -> None:
        self.instance = instance
        self.state = state

    def environment(self) -> dict[str, str]:
        """The caller's environment, with the values that `docker-compose.yml` leaves open."""
        ports, password = self.state.ports, self.state.password
        return os.environ | {
            "RABBITMQ_PORT": str(ports.amqp),
            "RABBITMQ_MANAGEMENT_PORT": str(ports.management),
            "RABBITMQ_PROMETHEUS_PORT": str(ports.prometheus),
            "RABBITMQ_USER": USER,
            "RABBITMQ_PASSWORD": password,
            "POSTGRES_PORT": str(ports.postgresql),
            "POSTGRES_USER": USER,
            "POSTGRES_PASSWORD": password,
            "POSTGRES_DB": DATABASE,
        }

    def argv(self, *arguments: str) -> list[str]:
        """A Compose command for this instance's project."""
        file = self.instance.clone / "docker-compose.yml"
        return ["docker", "compose", "-p", f"jobs-kit-{self.instance.key}", "-f", str(file), *arguments]

    def _compose(self, *arguments: str) -> None:
        done = subprocess.run(
            self.argv(*arguments), env=self.environment(), stdin=subprocess.DEVNULL, stdout=2
        )
        if done.returncode != 0:
            raise CannotServe(
                f"expected docker compose {arguments[0]} to succeed, got: exit {done.returncode}"
            )

    def start(self, services: Sequence[str] = SERVICES) -> None:
        now = self.running()
        if not any(now.values()):
            self.state.take_free_ports()
        if not all(now[name] for name in services):
            self._up(services)
        ports, password = self.state.ports, self.state.password
        answers = {
            "rabbitmq": lambda: readiness.rabbitmq_answers(ports, password),
            "postgresql": lambda: readiness.postgresql_answers(ports.postgresql),
        }
        for name in services:
            readiness.wait_until(answers[name], name=name, failed=lambda: None)

    def _up(self, services: Sequence[str]) -> None:
        # Saved first: an interrupted start leaves a project that can still be ended.
        self.state.save(self.instance.state_file)
        say(f"Starting {' and '.join(services)} with docker compose")
        try:
            self._compose("up", "-d", "--wait", *services)
        except CannotServe:
            subprocess.run(self.argv("logs", "--tail", "20", *services), env=self.environment(), stdout=2)
            raise

    def stop(self, services: Sequence[str] = SERVICES) -> None:
        self._compose("stop", *services)

    def kill(self, service: str) -> None:
        self._compose("kill", service)

    def rabbitmqctl(self, arguments: Sequence[str]) -> int:
        command = self.argv("exec", "-T", "rabbitmq", "rabbitmqctl", *arguments)
        return subprocess.run(command, env=self.environment(), stdin=subprocess.DEVNULL).returncode

    def remove(self) -> None:
        self._compose("down", "--volumes", "--timeout", "20")
        self.instance.remove()

    def running(self) -> dict[str, bool]:
        listed = subprocess.run(
            self.argv("ps", "--services", "--status", "running"),
            env=self.environment(),
            capture_output=True,
            text=True,
        )
        return {name: name in listed.stdout.split() for name in SERVICES}

    def versions(self) -> str:
        return "RabbitMQ and PostgreSQL from the Docker engine"
