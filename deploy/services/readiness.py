"""Do the services answer yet? Asked on the wire, as a client would."""

import socket
import struct
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from typing import Final

from deploy.services.endpoints import DATABASE, USER, Ports
from deploy.services.errors import CannotServe

START_SECONDS: Final = 180.0


def _first_bytes(port: int, hello: bytes, count: int) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(hello)
            return connection.recv(count)
    except OSError:
        return b""


def amqp_answers(port: int) -> bool:
    """Whether a broker opens the conversation: a method frame (type 1) answers the protocol header."""
    return _first_bytes(port, b"AMQP\x00\x00\x09\x01", 1) == b"\x01"


def postgresql_answers(port: int) -> bool:
    """Whether the server takes connections: it asks who we are ("R") rather than "is starting up" ("E")."""
    body = struct.pack("!i", 196608) + f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
    return _first_bytes(port, struct.pack("!i", len(body) + 4) + body, 1) == b"R"


def management_answers(port: int, password: str) -> bool:
    """Whether RabbitMQ's HTTP API answers to our user."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/overview")
    request.add_header("Authorization", "Basic " + b64encode(f"{USER}:{password}".encode()).decode())
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def rabbitmq_answers(ports: Ports, password: str) -> bool:
    """Whether clients and the HTTP API are served: the first to answer is not the last."""
    return amqp_answers(ports.amqp) and management_answers(ports.management, password)


def wait_until(answers: Callable[[], bool], *, name: str, failed: Callable[[], str | None]) -> None:
    """Poll until a service answers; at most three minutes.

    `failed` is asked in between: a text means that waiting is in vain. Raises `CannotServe` with that text,
    or when the time is over.
    """
    deadline = time.monotonic() + START_SECONDS
    while not answers():
        reason = failed()
        if reason is not None:
            raise CannotServe(f"{name} did not start: {reason}")
        if time.monotonic() > deadline:
            raise CannotServe(f"{name} did not answer within {START_SECONDS:.0f} s")
        time.sleep(0.1)
