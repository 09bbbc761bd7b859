"""What is remembered about an instance between two commands?"""

import json
import os
import secrets
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Self

from deploy.services import ports
from deploy.services.endpoints import Endpoints, Ports
from deploy.services.processes import Process


@dataclass
class State:
    """One instance: who provides it, where it answers, which processes were started for it.

    `engine` is "docker" or "debian". `rabbitmq` is the oldest major version that was asked for, None for the
    one at hand. `processes` is empty for Docker, whose engine knows by itself.
    """

    engine: str
    ports: Ports
    password: str
    rabbitmq: int | None = None
    processes: dict[str, Process] = field(default_factory=dict)

    @classmethod
    def new(cls, engine: str, rabbitmq: int | None = None) -> Self:
        """For an instance that does not exist yet: free ports, a fresh password."""
        return cls(engine, ports.choose(), secrets.token_hex(12), rabbitmq)

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Read it back; None where there is none or where it cannot be read as one."""
        try:
            raw = json.loads(path.read_text())
            return cls(
                raw["engine"],
                Ports(**raw["ports"]),
                raw["password"],
                raw.get("rabbitmq"),  # a file of an earlier version has none
                {name: Process(**each) for name, each in raw["processes"].items()},
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, path: Path) -> None:
        """Write it in one step, readable by its owner only: it holds the password."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(self), file, indent=1)
        draft.replace(path)

    def take_free_ports(self) -> None:
        """Keep the ports, which people have noted, unless something else took one of them meanwhile."""
        if not all(ports.is_free(port) for port in astuple(self.ports)):
            self.ports = ports.choose()

    def running(self, name: str) -> Process | None:
        """The process started under this name, if exactly that one still runs."""
        process = self.processes.get(name)
        return process if process is not None and process.is_alive() else None

    @property
    def endpoints(self) -> Endpoints:
        """Where this instance answers."""
        return Endpoints.of(self.ports, self.password)
