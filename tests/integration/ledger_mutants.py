"""Ledgers that are wrong on purpose: what the crash-point kit is there to find."""

from __future__ import annotations

from typing import Any

from dramatiq import Broker
from dramatiq.middleware import Middleware
from sqlalchemy import Connection, delete, insert

from middleware.effects.entry import Entry, Limits
from middleware.store import Store, job_ledger

from .keyed_jobs import KeyedJobs


def without_key(jobs: KeyedJobs) -> None:
    """Commit the effect without its key."""
    _forget_key_before_commit(jobs, [])


def with_two_commits(jobs: KeyedJobs) -> None:
    """Commit the effect, and then its key in a transaction of its own."""
    entries: list[Entry] = []
    _forget_key_before_commit(jobs, entries)
    jobs.broker.add_middleware(_KeyAfterwards(jobs.store, entries))


def with_key_first(jobs: KeyedJobs) -> None:
    """Commit the key in a transaction of its own, and then the effect."""
    database: Any = jobs.ledger._database
    open_ = database.open

    def open_twice(connection: Connection, entry: Entry, limits: Limits) -> Any:
        message = open_(connection, entry, limits)
        if message is None:
            return None
        connection.connection.commit()
        connection.connection.rollback()
        forgotten = entry._replace(key=f"{entry.key} forgotten {entry.message_id}")
        return open_(connection, forgotten, limits)

    _replace(database, open_twice)


def acknowledging_first(jobs: KeyedJobs) -> None:
    """Acknowledge a job before it runs."""
    jobs.broker.add_middleware(_AcknowledgeFirst())


def acknowledging_before_the_retry(jobs: KeyedJobs) -> None:
    """Acknowledge a failed job before its retry is published."""
    settlement: Any = jobs.broker.settlement
    settle = settlement._settle

    def acknowledge_and_settle(delivery: Any) -> None:
        outbound, settlement._outbound = settlement._outbound, _Acknowledging(settlement._outbound, delivery)
        try:
            settle(delivery)
        finally:
            settlement._outbound = outbound

    settlement._settle = acknowledge_and_settle


def _forget_key_before_commit(jobs: KeyedJobs, entries: list[Entry]) -> None:
    database: Any = jobs.ledger._database
    open_ = database.open

    def open_and_forget(connection: Connection, entry: Entry, limits: Limits) -> Any:
        message = open_(connection, entry, limits)
        if message is not None:
            connection.execute(delete(job_ledger).where(job_ledger.c.key == entry.key))
            entries.append(entry)
        return message

    _replace(database, open_and_forget)


def _replace(database: Any, open_: Any) -> None:
    """Put a method in the class's place, where the kit finds it as it would find the class's."""
    mutant = type("Mutant", (type(database),), {"open": staticmethod(open_)})
    database.__class__ = mutant


class _KeyAfterwards(Middleware):
    def __init__(self, store: Store, entries: list[Entry]) -> None:
        self._store = store
        self._entries = entries

    def after_process_message(
        self, broker: Broker, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        while self._entries and exception is None:
            with self._store.writing() as connection:
                connection.execute(insert(job_ledger).values(self._entries.pop()._asdict()))


class _AcknowledgeFirst(Middleware):
    def before_process_message(self, broker: Broker, message: Any) -> None:
        message.link.ack(message.tag)


class _Acknowledging:
    def __init__(self, outbound: Any, delivery: Any) -> None:
        self._outbound = outbound
        self._delivery = delivery

    def submit(self, tickets: Any) -> None:
        self._delivery.link.ack(self._delivery.tag)
        self._outbound.submit(tickets)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbound, name)
