"""Are services on another machine refused?"""

import pytest

from deploy.services.errors import CannotServe
from deploy.services.loopback import given

BROKER = "amqp://guest:guest@127.0.0.1:5672/%2F"
DATABASE = "postgresql+psycopg://jobs:p%40ss@localhost:5432/jobs"


def environment(broker: str = BROKER, database: str = DATABASE) -> dict[str, str]:
    """What a person exports to use services of their own."""
    return {"JOBS_TEST_BROKER_URL": broker, "JOBS_TEST_DATABASE_URL": database}


@pytest.mark.parametrize(
    ("broker", "database"),
    [
        (BROKER, DATABASE),
        ("amqp://127.0.0.1;amqp://localhost:5673", DATABASE),
        ("amqp://u:p@[::1]:5672/", "postgresql://u@[::1]/d"),
        (BROKER, "postgresql://127.0.0.1:1,127.0.0.2:2/d?hostaddr=127.0.0.3"),
    ],
)
def test_this_machine_is_taken(broker: str, database: str) -> None:
    """Addresses of the loopback range are taken as they are."""
    assert given(environment(broker, database)) == environment(broker, database)


@pytest.mark.parametrize(
    ("broker", "database"),
    [
        ("amqp://broker.internal", DATABASE),
        ("amqp://127.0.0.1;amqp://10.0.0.1", DATABASE),
        ("amqp://127.0.0.1@10.0.0.1", DATABASE),
        ("amqp://localhost.evil:5672", DATABASE),
        ("amqp://[2001:db8::1]:5672", DATABASE),
        ("amqp:///", DATABASE),
        ("inline://127.0.0.1", DATABASE),
        (BROKER, "postgresql://10.0.0.1/d"),
        (BROKER, "postgresql://127.0.0.1,10.0.0.1/d"),
        (BROKER, "postgresql://127.0.0.1/d?host=db.internal"),
        (BROKER, "postgresql://127.0.0.1/d?hostaddr=10.0.0.1"),
        (BROKER, "postgresql://127.0.0.1/d?service=production"),
        (BROKER, "postgresql:///d"),
        (BROKER, "sqlite:///d"),
    ],
)
def test_everything_else_is_refused(broker: str, database: str) -> None:
    """An address that leads, or may lead, to another machine is refused by name of its variable."""
    with pytest.raises(CannotServe, match=r"expected JOBS_TEST_(BROKER|DATABASE)_URL to"):
        given(environment(broker, database))


def test_management_is_checked_too() -> None:
    """The HTTP API closes connections and deletes queues: it must be on this machine as well."""
    with pytest.raises(CannotServe, match="JOBS_TEST_MANAGEMENT_URL"):
        given(environment() | {"JOBS_TEST_MANAGEMENT_URL": "http://u:p@10.0.0.1:15672"})


def test_nothing_given() -> None:
    """Without these variables, or with empty ones, services are started."""
    assert given({"JOBS_BROKER_URL": BROKER, "JOBS_TEST_BROKER_URL": ""}) is None


def test_half_given() -> None:
    """One of the two alone is an error: the other would be mixed in from elsewhere."""
    with pytest.raises(CannotServe, match="JOBS_TEST_DATABASE_URL to be set"):
        given({"JOBS_TEST_BROKER_URL": BROKER})
