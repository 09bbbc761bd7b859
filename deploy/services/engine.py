"""Who provides the services, and what can be asked of whoever does?"""

from collections.abc import Sequence
from typing import Final, Protocol

from deploy.services.state import State

SERVICES: Final = ("rabbitmq", "postgresql")


class Engine(Protocol):
    """Docker or Debian's packages, for one instance. Every method may raise `CannotServe`.

    Attributes:
        state: what is remembered about the instance.
    """

    state: State

    def start(self, services: Sequence[str] = SERVICES) -> None:
        """Start what does not run; return when all of it answers."""

    def stop(self, services: Sequence[str] = SERVICES) -> None:
        """End what runs, orderly; data stays."""

    def kill(self, service: str) -> None:
        """End a service as a crash would, and wait for its end."""

    def rabbitmqctl(self, arguments: Sequence[str]) -> int:
        """Run `rabbitmqctl` on the node; its exit code."""

    def remove(self) -> None:
        """Stop everything and delete the data."""

    def running(self) -> dict[str, bool]:
        """Which services run."""

    def versions(self) -> str:
        """What is provided, for a person to read."""
