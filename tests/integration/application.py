"""How does a test run the application's own actors: with settings of its own, on a database of its own?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from dramatiq import Actor

from jobs.chats.model import _client
from jobs.settings import get_settings
from middleware import Store
from middleware.transport.wrapping import function_of

from ..model_server import ModelServer, serve_model
from .keyed_jobs import KeyedJobs

Configure: TypeAlias = Callable[..., None]


def _forget() -> None:
    get_settings.cache_clear()
    if _client.cache_info().currsize:
        _client().close()
    _client.cache_clear()


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Configure]:
    """Set settings by name, such as `smtp_url`; after the test those of the environment hold again."""

    def set_(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"JOBS_{name.upper()}", value)
        _forget()

    yield set_
    monkeypatch.undo()
    _forget()


@pytest.fixture
def sync_jobs(store: Store) -> Iterator[KeyedJobs]:
    """`def` actors on a database of either kind."""
    jobs = KeyedJobs(store, "def")
    yield jobs
    jobs.close()


@pytest.fixture
def model(configure: Configure) -> Iterator[ModelServer]:
    """The model's API that the settings name; it is given half a second for an answer."""
    with serve_model() as server:
        configure(llm_url=server.url, llm_model="small", llm_timeout="500ms")
        yield server


def redeclare(jobs: KeyedJobs, actor: Actor[..., Any]) -> Actor[..., Any]:
    """Return one of the application's keyed actors, declared on a test's broker and database."""
    options = {name: actor.options[name] for name in ("idempotency_key", "effect") if name in actor.options}
    return jobs.declare(function_of(actor), actor.actor_name, **options)
