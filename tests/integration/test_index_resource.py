"""Does the index hold each resource's newest version, in whatever order its jobs come?"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from dramatiq import Actor
from sqlalchemy import text

from jobs import index_resource
from jobs.resources import full_text, indexing
from jobs.resources.full_text import MOST_WORDS, NO_WORDS, Found, search, write_entry
from middleware import Store
from middleware.transport.outcome import COMPLETED, DUPLICATE, Dead

from .application import redeclare
from .keyed_jobs import KeyedJobs, keys, rows


@pytest.fixture
def actor(sync_jobs: KeyedJobs, monkeypatch: pytest.MonkeyPatch) -> Actor[..., Any]:
    """The actor, and the search, on the test's database."""
    for module in (full_text, indexing):
        monkeypatch.setattr(module, "store", sync_jobs.store)
    return redeclare(sync_jobs, index_resource)


def put(store: Store, version: int, body: str, *, resource: str = "r", title: str = "Title") -> None:
    """Bring a resource to a version, as the product does."""
    values = {"id": resource, "version": version, "title": title, "body": body}
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM resources WHERE id = :id"), values)
        connection.execute(
            text("INSERT INTO resources (id, version, title, body) VALUES (:id, :version, :title, :body)"),
            values,
        )


def found(words: str) -> list[tuple[str, int]]:
    """Return what a search finds."""
    return [(each.resource_id, each.version) for each in search(words)]


def test_a_resource_is_found_by_what_it_says(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """Title and body are searched, in lower case; all words have to be there; the key names the version."""
    put(sync_jobs.store, 1, "How to install a Café", title="Guide")
    assert sync_jobs.run(actor, "r", 1).outcome is COMPLETED
    assert search("INSTALL guide") == [Found("r", 1)]
    assert found("café") == [("r", 1)]
    assert found("cafe") == found("install nothing") == []
    assert keys(sync_jobs.store) == ["resource:r:v1"]
    assert sync_jobs.run(actor, "r", 1).outcome is DUPLICATE


@pytest.mark.parametrize(
    "words",
    ["", "  ", '"', "guide OR", "guide AND NOT x", "body:guide", "-guide*", "!!!", "guide\0x", "gui\ud800de"],
)
def test_nothing_in_a_search_is_an_operator(sync_jobs: KeyedJobs, actor: Actor[..., Any], words: str) -> None:
    """Whatever somebody types is searched for as words, and never an error."""
    put(sync_jobs.store, 1, "Nothing of the kind.")
    sync_jobs.run(actor, "r", 1)
    assert found(words) == []


def test_a_search_for_very_many_words_is_refused(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """Each database has a longest query of its own; the search's comes before, and counts a word once."""
    longest = [f"{number:03d}{'ü' * 600}" for number in range(MOST_WORDS)]
    put(sync_jobs.store, 1, " ".join(longest))
    sync_jobs.run(actor, "r", 1)
    assert found(" ".join(longest)) == [("r", 1)]
    assert found("nothing " * 100_000) == []
    for words in (MOST_WORDS + 1, 100_000):
        with pytest.raises(ValueError, match=f"expected a query of at most {MOST_WORDS} .*, got: {words}; "):
            search(" ".join(f"word{number}" for number in range(words)))


@pytest.mark.parametrize(
    "words",
    [
        *(
            "ada",
            "example",
            "com",
            "ada@example.com",
            "https",
            "docs",
            "a.html",
            "HTML",
            "2",
            "2.0.1",
            "1 0 2",
        ),
        *("foo", "bar", "foo-bar", "bar_foo", "-5", "5", "1e5", "o'hara", "hara", "σοφος", "ΣΟΦΟΣ", "file"),
        "w" * 3000,
    ],
)
def test_both_databases_split_alike(sync_jobs: KeyedJobs, actor: Actor[..., Any], words: str) -> None:
    """Parts of addresses, URLs, versions and compounds are words on PostgreSQL as on SQLite."""
    body = "ada@example.com see https://example.com/docs/a.html version 2.0.1 foo-bar -5 1e5 o'Hara ΣΟΦΟΣ ﬁle"
    put(sync_jobs.store, 1, f"{body} {'W' * 3000}")
    sync_jobs.run(actor, "r", 1)
    assert found(words) == [("r", 1)]
    assert found(f"{words} nothing") == found("exam") == found("sophos") == []


def test_the_best_comes_first(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """A resource that says a word more often stands before one that says it once."""
    for resource, body in (("a", "printer and much else beside"), ("b", "printer printer printer and else")):
        put(sync_jobs.store, 1, body, resource=resource)
        sync_jobs.run(actor, resource, 1)
    assert [resource for resource, _ in found("printer")] == ["b", "a"]
    assert len(search("printer", limit=1)) == 1


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3])), ids=str)
def test_jobs_in_any_order_leave_the_newest_version(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], order: tuple[int, ...]
) -> None:
    """Jobs of older versions that come late do nothing; what only those said is not found."""
    put(sync_jobs.store, 3, "third")
    for version in order:
        assert sync_jobs.run(actor, "r", version).outcome is COMPLETED
    assert found("third") == [("r", 3)]
    assert rows(sync_jobs.store.engine, "SELECT version FROM resource_index") == [3]


def test_a_new_version_replaces_the_old_ones_words(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """After an update its words are found and the old ones are not."""
    for version, body in ((1, "first"), (2, "second")):
        put(sync_jobs.store, version, body)
        sync_jobs.run(actor, "r", version)
    assert (found("first"), found("second")) == ([], [("r", 2)])


def test_an_older_version_never_overwrites_a_newer_entry(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that read the resource before an update, and writes after it, changes nothing."""
    monkeypatch.setattr(full_text, "store", store)
    for version, body in ((2, "second"), (1, "first")):  # as it looked to the newer and to the older job
        with store.engine.begin() as connection:
            write_entry(connection, "r", version, body)
    assert (found("first"), found("second")) == ([], [("r", 2)])


def test_a_version_that_is_not_there_yet_is_retried(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """A job that overtakes the commit it was sent for comes again, and its key is not spent."""
    put(sync_jobs.store, 1, "first")
    outcome = sync_jobs.run(actor, "r", 2).outcome
    assert isinstance(outcome, Dead)  # no retries on this broker
    assert (outcome.kind, str(outcome.error)) == ("transient", "resource 'r' is at version 1, not yet at 2")
    assert (keys(sync_jobs.store), found("first")) == ([], [])


def delete(store: Store, resource: str = "r") -> None:
    """Delete a resource, as the product does."""
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM resources WHERE id = :id"), {"id": resource})


def test_a_deleted_resource_is_found_no_more(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """The job of the change that deleted it takes it out of the index, once; its neighbours stay."""
    for resource in ("r", "s"):
        put(sync_jobs.store, 1, "first", resource=resource)
        sync_jobs.run(actor, resource, 1)
    delete(sync_jobs.store)
    assert sync_jobs.run(actor, "r", 2).outcome is COMPLETED
    assert found("first") == [("s", 1)]
    assert sync_jobs.run(actor, "r", 2).outcome is DUPLICATE


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3])), ids=str)
def test_older_jobs_of_a_deleted_resource_bring_nothing_back(
    sync_jobs: KeyedJobs, actor: Actor[..., Any], order: tuple[int, ...]
) -> None:
    """Whichever of its jobs are late, each completes, and nothing of the resource is found."""
    put(sync_jobs.store, 1, "first")
    sync_jobs.run(actor, "r", 1)
    delete(sync_jobs.store)
    for version in order:
        assert sync_jobs.run(actor, "r", version).outcome in (COMPLETED, DUPLICATE)
    assert found("first") == []


def test_a_resource_that_is_made_anew_is_found_again(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """Its versions go on counting, and a late job of the deletion does not take it out again."""
    put(sync_jobs.store, 1, "first")
    sync_jobs.run(actor, "r", 1)
    put(sync_jobs.store, 3, "third")
    sync_jobs.run(actor, "r", 3)
    assert sync_jobs.run(actor, "r", 2).outcome is COMPLETED
    assert found("third") == [("r", 3)]


def test_a_deletion_seen_late_does_not_take_out_what_is_newer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that found the resource gone, and writes after it was made anew, changes nothing."""
    monkeypatch.setattr(full_text, "store", store)
    for version, terms in ((1, "first"), (3, "third"), (2, NO_WORDS)):
        with store.engine.begin() as connection:
            write_entry(connection, "r", version, terms)
    assert found("third") == [("r", 3)]


def test_a_missing_resource_is_invalid(sync_jobs: KeyedJobs, actor: Actor[..., Any]) -> None:
    """A resource that is not there is never retried."""
    outcome = sync_jobs.run(actor, "x", 1).outcome
    assert isinstance(outcome, Dead)
    assert (outcome.kind, str(outcome.error)) == (
        "invalid",
        "expected a resource 'x', got: none, nor one in the index",
    )


def test_a_resource_beyond_the_indexs_limit_is_invalid(
    postgresql: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of more words than a tsvector holds, 1 MB, would fail however often it is tried."""
    monkeypatch.setattr(indexing, "store", postgresql)
    jobs = KeyedJobs(postgresql, "def")
    put(postgresql, 1, " ".join(f"word{number}" for number in range(150_000)))
    outcome = jobs.run(redeclare(jobs, index_resource), "r", 1).outcome
    jobs.close()
    assert isinstance(outcome, Dead)
    assert outcome.kind == "invalid"
    assert "resource 'r' is too long to be indexed" in str(outcome.error)


def test_the_index_survives_a_vacuum(sqlite: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite may renumber rows that have no number of their own; these have one."""
    monkeypatch.setattr(full_text, "store", sqlite)
    for resource in ("a", "b", "c"):
        with sqlite.engine.begin() as connection:
            write_entry(connection, resource, 1, f"only {resource}word")
    with sqlite.engine.begin() as connection:
        connection.execute(text("DELETE FROM resource_index WHERE resource_id = 'a'"))
    with sqlite.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM")
    assert (found("aword"), found("bword"), found("cword")) == ([], [("b", 1)], [("c", 1)])
