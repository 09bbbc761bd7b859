"""Does an address stay on this machine? Tests create, flood and delete: they never touch another one."""

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from deploy.services.errors import CannotServe

SCHEMES: Final = {
    "JOBS_TEST_BROKER_URL": ("amqp", "amqps"),
    "JOBS_TEST_DATABASE_URL": ("postgresql", "postgresql+psycopg"),
    "JOBS_TEST_MANAGEMENT_URL": ("http", "https"),
}


def is_loopback(host: str) -> bool:
    """Whether this host name or address is this machine's own: `localhost`, 127.0.0.0/8 or `::1`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hosts(url: str) -> list[str]:
    """Every host that an address names, `host=` and `hostaddr=` of a PostgreSQL address included.

    An address without a host gives "": where it leads depends on the environment.
    """
    found = []
    for each in url.split(";"):
        parts = urlsplit(each)
        for place in parts.netloc.rpartition("@")[2].split(","):
            host = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
            found.append(unquote(host))
        options = parse_qs(parts.query, keep_blank_values=True)
        for name in ("host", "hostaddr", "service"):
            found += [host for value in options.get(name, []) for host in value.split(",")]
    return found


def given(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The services that the person set for the tests; None if they set none.

    Raises `CannotServe` when only one of broker and database is set, or one is not on this machine.
    """
    found = {name: environment[name] for name in SCHEMES if environment.get(name)}
    if not found:
        return None
    for name in ("JOBS_TEST_BROKER_URL", "JOBS_TEST_DATABASE_URL"):
        if name not in found:
            raise CannotServe(
                f"expected {name} to be set, as {' and '.join(found)} is, got: nothing; set both or none"
            )
    for name, url in found.items():
        if any(urlsplit(each).scheme not in SCHEMES[name] for each in url.split(";")):
            raise CannotServe(
                f"expected {name} to start with {SCHEMES[name][0]}://, got: {urlsplit(url).scheme}://…"
            )
        for host in hosts(url):
            if not is_loopback(host):
                raise CannotServe(
                    f"expected {name} to name this machine (127.0.0.1, ::1 or localhost), got: {host!r}; "
                    "unset it and `make` starts services of its own"
                )
    return found
