"""Where do the services of an instance answer, and as which environment variables is that passed on?"""

from dataclasses import dataclass
from typing import Final

USER: Final = "jobs"
DATABASE: Final = "jobs"


@dataclass(frozen=True)
class Ports:
    """The loopback ports of one instance."""

    amqp: int
    management: int
    prometheus: int
    distribution: int
    epmd: int
    postgresql: int


@dataclass(frozen=True)
class Endpoints:
    """The addresses of one instance, each with user and password."""

    broker_url: str
    database_url: str
    management_url: str

    @classmethod
    def of(cls, ports: Ports, password: str) -> "Endpoints":
        """The addresses that follow from an instance's ports; user and database are both `jobs`."""
        login = f"{USER}:{password}@127.0.0.1"
        return cls(
            broker_url=f"amqp://{login}:{ports.amqp}/%2F",
            database_url=f"postgresql+psycopg://{login}:{ports.postgresql}/{DATABASE}",
            management_url=f"http://{login}:{ports.management}",
        )

    def variables(self, prefix: str) -> dict[str, str]:
        """As environment variables: `JOBS_` is read by the application, `JOBS_TEST_` by the tests."""
        return {
            f"{prefix}BROKER_URL": self.broker_url,
            f"{prefix}DATABASE_URL": self.database_url,
            f"{prefix}MANAGEMENT_URL": self.management_url,
        }
