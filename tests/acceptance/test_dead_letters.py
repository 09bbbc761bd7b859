"""Does a dead letter outlive those who read it?"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import pika
import pika.exceptions

from ..waiting import wait_until
from .deployment import Deployment, probe

_TIMES = 40


def test_a_dead_letter_outlives_forty_looks_and_forty_crashes_of_its_reader(deployment: Deployment) -> None:
    """Getting and returning a dead letter, or dying with it in hand, forty times each does not destroy it."""
    worker = deployment.start().wait_ready()
    deployment.send(probe("rejected", rejections=1))
    deployment.wait_for_dead_letter()
    worker.stop()
    for _ in range(_TIMES):
        with deployment.rabbit.channel() as channel:
            method = channel.basic_get("critical.XQ")[0]
            assert method is not None
            channel.basic_nack(method.delivery_tag, requeue=True)
    for _ in range(_TIMES):
        _crash_with_it(deployment)
        wait_until(lambda: deployment.rabbit.ready("critical.XQ") == 1, what="the dead letter to be back")
    assert [letter.name for letter in deployment.dead_letters()] == ["rejected"]


def _crash_with_it(deployment: Deployment) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(deployment.rabbit.url))
    channel = connection.channel()
    deliveries = channel.consume("critical.XQ")
    assert next(deliveries)[0] is not None
    connected: Any = connection._impl  # pika has no public way to end without a goodbye
    connected._transport._sock.shutdown(socket.SHUT_RDWR)
    with suppress(pika.exceptions.AMQPError):
        connection.process_data_events(time_limit=None)
