"""How much slower are jobs while the ledger forgets? Keys inserted into a full table that is pruned."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from sqlalchemy import text

from middleware.effects.pruning import Pruned, Pruner
from middleware.store import Store, migrate
from tests.bench import pgbench
from tests.bench.row import KIT, Contestant, Row, Target
from tests.bench.services import Services

_ROWS: Final = 10_000_000
_INSERTS: Final = 50_000
_KEEP: Final = timedelta(days=120)
_EMPTY: Final = "empty table"
_FULL: Final = "as full, not pruned"
_FILL: Final = text(
    "INSERT INTO job_ledger (key, args_hash, actor, message_id, created_at) "
    "SELECT 'credit.task-' || n || '.message-' || n, decode(md5(n::text), 'hex'), 'charge_credit', "
    "gen_random_uuid()::text, now() - interval '180 days' * (1 - n / CAST(:rows AS float)) "
    "FROM generate_series(1, :rows) n"
)


def _while_pruning(services: Services) -> float:
    with _full(services) as store, _pruned(store):
        return _inserting(store, services)


def _unpruned(services: Services) -> float:
    with _full(services) as store:
        return _inserting(store, services)


@contextmanager
def _full(services: Services) -> Iterator[Store]:
    with _database(services) as store:
        with store.engine.begin() as connection:
            connection.execute(_FILL, {"rows": services.scaled(_ROWS)})
        with store.stateless() as connection:
            connection.execute(text("VACUUM (ANALYZE) job_ledger"))
        yield store


def _empty(services: Services) -> float:
    with _database(services) as store:
        return _inserting(store, services)


def _inserting(store: Store, services: Services) -> float:
    return pgbench.rate(store.url.render_as_string(False), services.scaled(_INSERTS), pgbench.INSERT)


@contextmanager
def _pruned(store: Store) -> Iterator[None]:
    """Prune while the block runs, for which a third of the rows have to be enough."""
    stop, found = threading.Event(), list[Pruned]()
    pruner = Pruner(store, _KEEP, timedelta(0))
    thread = threading.Thread(target=lambda: found.append(pruner.run(stop)))
    thread.start()
    try:
        yield
        is_running = thread.is_alive()
    finally:
        stop.set()
        thread.join()
    if not is_running or not found[0].keys:
        raise RuntimeError(f"expected rows to be pruned until the last insert, got: {found}")


@contextmanager
def _database(services: Services) -> Iterator[Store]:
    with services.database() as url:
        migrate(url, application=None)
        store = Store(url)
        try:
            yield store
        finally:
            store.dispose()


ROW: Final = Row(
    name="pruning",
    what=f"{_INSERTS:,} keys inserted by 8 clients into a ledger of {_ROWS:,} rows that is being pruned",
    unit="inserts/s",
    contestants=(
        Contestant(name=KIT, measure=_while_pruning, missing=pgbench.missing),
        Contestant(name=_FULL, measure=_unpruned, missing=pgbench.missing),
        Contestant(name=_EMPTY, measure=_empty, missing=pgbench.missing),
    ),
    targets=(Target(to=_EMPTY, at_least=0.80),),
)
