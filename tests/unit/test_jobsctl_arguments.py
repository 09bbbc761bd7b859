from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq.brokers.stub import StubBroker

from middleware.cli.actors import find_actor
from middleware.cli.arguments import describe_signature, read_arguments
from middleware.cli.problems import BadInput


@pytest.fixture
def broker() -> Iterator[StubBroker]:
    broker = StubBroker(middleware=[])

    @dramatiq.actor(broker=broker)
    def charge(task_id: str, amount: int = 1, note: str | None = None) -> None: ...

    @dramatiq.actor(broker=broker)
    def index(*resource_ids: str, force: bool = False) -> None: ...

    @dramatiq.actor(broker=broker)
    def anything(value: Any) -> None: ...

    yield broker
    broker.close()


@pytest.mark.parametrize(
    ("name", "words", "kwargs", "expected"),
    [
        ("charge", ["007", "3"], None, (("007", 3), {})),
        ("charge", ["t1", "3", "5"], None, (("t1", 3, "5"), {})),
        ("charge", ["t1"], '{"amount": 2}', (("t1",), {"amount": 2})),
        ("charge", ["true", "-4"], None, (("true", -4), {})),
        ("index", ["1", "2"], '{"force": true}', (("1", "2"), {"force": True})),
        ("anything", ["[1, null]"], None, (([1, None],), {})),
        ("anything", ["plain"], None, (("plain",), {})),
        ("anything", ["NaN"], None, (("NaN",), {})),
    ],
)
def test_words_become_arguments(
    broker: StubBroker, name: str, words: list[str], kwargs: str | None, expected: object
) -> None:
    """A word is JSON where it parses, except for a parameter that is declared as text."""
    assert read_arguments(broker.actors[name], words, kwargs) == expected


@pytest.mark.parametrize("words", [[], ["a", "1", "b", "c"]])
def test_arguments_that_do_not_fit_are_refused(broker: StubBroker, words: list[str]) -> None:
    """Too few or too many arguments are refused with the actor's signature, before anything is sent."""
    with pytest.raises(
        BadInput, match=r"expected the arguments to fit charge\(task_id: str, amount: int = 1"
    ):
        read_arguments(broker.actors["charge"], words, None)


@pytest.mark.parametrize("text", ["", "[1]", "{'a': 1}", '{"amount": NaN}'])
def test_kwargs_must_be_an_object(broker: StubBroker, text: str) -> None:
    """Keyword arguments are one JSON object."""
    with pytest.raises(BadInput, match="expected --kwargs to be a JSON object"):
        read_arguments(broker.actors["charge"], ["t"], text)


def test_signature_is_told_without_its_return(broker: StubBroker) -> None:
    """An actor is listed with its parameters."""
    assert describe_signature(broker.actors["index"]) == "index(*resource_ids: str, force: bool = False)"


def test_unknown_actor_names_the_nearest(broker: StubBroker) -> None:
    """A misspelt actor is answered with all known ones and the nearest."""
    with pytest.raises(BadInput) as caught:
        find_actor(broker.actors, "chrage")
    assert str(caught.value) == (
        "expected ACTOR to be one of the declared actors (anything, charge, index), got: 'chrage'; "
        "did you mean charge?; a file under jobs/ is imported in jobs/__init__.py; for actors of a module of "
        "your own set JOBS_APP to it, as in "
        "`JOBS_APP=my_actors jobsctl send …`; the module begins with `from jobs import seed, store`"
    )
