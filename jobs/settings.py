"""What can be set, in which unit, and what holds if it is not?

Every knob is an environment variable, `JOBS_` and the field's name in capitals, and may stand in `.env` or
in the file that JOBS_ENV_FILE names (empty: none). Durations are written `500ms`, `30s`, `5m`, `1h30m`,
`30d`; a plain number means seconds.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Annotated, Final, TypeAlias

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from middleware.configuration import (
    BROKER_URL,
    DATABASE_URL,
    HTTP_URL,
    INLINE,
    MANAGEMENT_URL,
    SECRET,
    Refusal,
    duration,
    load,
    read_by,
    shown,
    whole_number,
)

from .mail.mailboxes import read_mailbox
from .mail.smtp import read_server


def _smtp(text: str) -> str:
    read_server(text)
    return text


def _mailbox(text: str) -> str:
    read_mailbox(text)
    return text


SMTP_URL: Final = read_by(
    _smtp,
    "smtp://user:password@host:port, the same with ?starttls, or smtps://…",
    "write it like smtp://127.0.0.1:8025, with %XX for special characters of the password; "
    "user and password have to be ASCII",
)
MAILBOX: Final = read_by(
    _mailbox,
    "name@domain or Name <name@domain>",
    "write it like Jobs <jobs@example.com>",
)

Short: TypeAlias = Annotated[timedelta, duration(timedelta(milliseconds=10), timedelta(hours=1))]
Long: TypeAlias = Annotated[timedelta, duration(timedelta(milliseconds=100), timedelta(days=365))]
Span: TypeAlias = Annotated[timedelta, duration(timedelta(0), timedelta(days=3650))]
Every: TypeAlias = Annotated[timedelta, duration(timedelta(minutes=1), timedelta(days=365))]
Lease: TypeAlias = Annotated[timedelta, duration(timedelta(seconds=1), timedelta(hours=1))]


class Settings(BaseSettings):
    """The application's configuration, read once and then frozen."""

    model_config = SettingsConfigDict(
        env_prefix="JOBS_", frozen=True, extra="ignore", env_ignore_empty=True, use_attribute_docstrings=True
    )

    # Services
    broker_url: Annotated[str, BROKER_URL] = INLINE
    """Where jobs are stored: `amqp://user:password@host:port/vhost`, several separated by `;` for a
    cluster, or `inline://` for this process and no server. Defaults to `inline://`."""
    database_url: Annotated[str, DATABASE_URL] = "sqlite:///jobs.sqlite3"
    """`postgresql+psycopg://user:password@host:port/database` or `sqlite:///file`. Defaults to the SQLite
    file `jobs.sqlite3` in the working directory."""
    management_url: Annotated[str, MANAGEMENT_URL] | None = None
    """RabbitMQ's HTTP API with user and password: more counts in `jobsctl queues`, and the start-up check
    of policies. Defaults to none."""
    smtp_url: Annotated[str, SMTP_URL] = "smtp://127.0.0.1:8025"
    """The server that takes email: `smtp://user:password@host:port`, with `?starttls` at its end for a
    connection that is encrypted before anything else is said, or `smtps://…` for one that is from the start.
    Without a port: 25, 587 with `?starttls`, 465. Defaults to port 8025 of this machine, where
    `python -m aiosmtpd -n` listens and prints what it gets."""
    llm_url: Annotated[str, HTTP_URL] | None = None
    """An OpenAI-compatible API, `http://host:port/v1`. Defaults to none: summaries are put together from a
    chat's own sentences, without a model."""

    # Sending
    publish_timeout: Short = timedelta(seconds=10)
    """How long `send()` may take before it raises. Defaults to 10 s."""
    max_delay: Long = timedelta(days=30)
    """The longest delay a job may be sent with; the delay queues follow from it. Defaults to 30 days."""
    payload_limit: Annotated[int, whole_number(1024, 16 * 1024 * 1024, "of bytes")] = 64 * 1024
    """Bytes of JSON that a job's arguments may take together. Defaults to 65,536 (64 KiB)."""

    outbox_limit: Annotated[int, whole_number(1, 10_000_000, "of jobs")] = 100_000
    """Jobs that may wait in the outbox before `enqueue()` refuses more. Defaults to 100,000."""

    submission_lifetime: Long = timedelta(days=1)
    """How long nothing may be heard of a job with a `job_id` before that is free to be submitted again.
    Defaults to 1 day."""

    # Running
    inline_threads: Annotated[int, whole_number(1, 64)] = 8
    """Worker threads of the inline broker. Defaults to 8; `dramatiq --threads` decides for RabbitMQ."""
    shutdown_grace: Short = timedelta(seconds=25)
    """How long running jobs may go on after the worker was told to stop; then they are interrupted and
    returned. Also what a job is granted beyond its time limit before the database ends its transaction.
    Defaults to 25 s, below the 30 s that Kubernetes grants."""
    broker_consumer_timeout: Long = timedelta(minutes=30)
    """The broker's own `consumer_timeout`: after that long without an acknowledgement it closes the channel.
    Defaults to 30 minutes, the broker's default."""

    # Failing
    max_retries: Annotated[int, whole_number(0, 1000)] = 12
    """Retries after the first attempt, unless the actor says otherwise. Defaults to 12."""
    min_backoff: Short = timedelta(seconds=1)
    """The wait before the first retry; it doubles with every further one. Defaults to 1 s."""
    max_backoff: Long = timedelta(hours=1)
    """The longest wait before a retry. Defaults to 1 hour."""

    # Database
    database_pool_size: Annotated[int, whole_number(1, 200)] = 16
    """Connections that a process keeps open for its threads; at least as many as it has worker threads.
    While all are in use SQLAlchemy opens up to 10 more, and the event loop of async actors has a pool of
    the same size for itself. Defaults to 16."""
    ledger_wait: Short = timedelta(seconds=1)
    """How long a job waits for a running twin with the same idempotency key before it is put off.
    Defaults to 1 s."""
    effect_lease: Lease = timedelta(seconds=30)
    """How long an attempt at an external effect (an email, a charge at a provider) belongs to its worker
    without a sign of life, of which it gives three in that time. Then its outcome is unknown. Defaults to
    30 s."""

    ledger_retention: Span = timedelta(days=120)
    """How long idempotency keys are remembered; a job that comes later, and has no row, is a dead letter. At
    least JOBS_MAX_DELAY, what a job may wait and be retried for, and JOBS_REPLAY_WINDOW together. Defaults to
    120 days."""
    replay_window: Span = timedelta(days=30)
    """How long after it became a dead letter a job may be replayed. Defaults to 30 days."""
    prune_every: Every = timedelta(days=1)
    """How often `jobsctl maintenance` forgets the keys that are older than that. Defaults to once a day."""

    # Email
    mail_from: Annotated[str, MAILBOX] = "jobs@localhost"
    """Whom email is from, `name@domain` or `Name <name@domain>`. Defaults to `jobs@localhost`."""
    smtp_timeout: Short = timedelta(seconds=10)
    """How long the mail server may take for each answer; an email needs six, and more with TLS and a login.
    Their sum is bounded by the 15 s that a job of `critical` may take, a limit that interrupts between two
    answers. If it is too short, an email that the server is slow to accept is sent again. Defaults to
    10 s."""

    # The model
    llm_key: Annotated[SecretStr, SECRET] | None = None
    """Sent as `Authorization: Bearer …`. Defaults to none."""
    llm_model: str = "gpt-4o-mini"
    """The model's name, as the API knows it. Defaults to `gpt-4o-mini`."""
    llm_connect_timeout: Short = timedelta(seconds=5)
    """How long a connection to the API may take. Defaults to 5 s."""
    llm_timeout: Short = timedelta(seconds=60)
    """How long the API may be silent during a call. Defaults to 60 s."""

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        self._in_order("min_backoff", "max_backoff")
        self._in_order("max_backoff", "max_delay")
        self._in_order("max_backoff", "submission_lifetime")
        self._in_order("effect_lease", "max_delay")
        self._in_order("shutdown_grace", "broker_consumer_timeout")
        least = self.max_delay + self.replay_window
        if self.ledger_retention < least:
            raise Refusal(
                f"at least JOBS_MAX_DELAY + JOBS_REPLAY_WINDOW ({shown(self.max_delay)} + "
                f"{shown(self.replay_window)} = {shown(least)}), and what jobs wait and are retried for",
                "raise it, or lower the others",
                name="JOBS_LEDGER_RETENTION",
                got=shown(self.ledger_retention),
            )
        if self.broker_url == INLINE and self.database_pool_size < self.inline_threads:
            raise Refusal(
                f"at least JOBS_INLINE_THREADS ({self.inline_threads})",
                "raise it, or run fewer threads",
                name="JOBS_DATABASE_POOL_SIZE",
                got=self.database_pool_size,
            )
        return self

    def _in_order(self, shorter: str, longer: str) -> None:
        if getattr(self, longer) < getattr(self, shorter):
            raise Refusal(
                f"at least JOBS_{shorter.upper()} ({shown(getattr(self, shorter))})",
                "raise the one or lower the other",
                name=f"JOBS_{longer.upper()}",
                got=shown(getattr(self, longer)),
            )


@cache
def get_settings() -> Settings:
    """Return the settings, read on the first call.

    Raises:
        ConfigurationError: a setting is wrong; the text names it, the rule and the way out.
    """
    return load(Settings)
