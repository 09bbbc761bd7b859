"""Celery's application: queue type, confirms and late acknowledgements are set, all else is its default."""

from __future__ import annotations

import os

from celery import Celery

from tests.bench.celery import QUEUE

app = Celery("bench", broker=os.environ["JOBS_BROKER_URL"])
app.conf.update(
    # https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/rabbitmq.html#using-quorum-queues
    task_default_queue=QUEUE,
    task_default_queue_type="quorum",
    broker_transport_options={"confirm_publish": True},
    task_acks_late=True,
    task_ignore_result=True,
)
