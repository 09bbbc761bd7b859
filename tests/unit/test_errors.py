from __future__ import annotations

from datetime import timedelta

import pytest
from dramatiq.errors import QueueNotFound
from dramatiq.middleware import MiddlewareError

import middleware
from middleware import errors


def test_what_send_raises_is_one_family() -> None:
    """Whoever catches `EnqueueError` catches everything that a send raises."""
    for kind in (
        middleware.NotEnqueued,
        middleware.EnqueueUnknown,
        middleware.PayloadError,
        middleware.UnknownQueue,
    ):
        assert issubclass(kind, middleware.EnqueueError)
    assert not issubclass(middleware.EnqueueUnknown, middleware.NotEnqueued)


def test_dramatiq_does_not_swallow_declaration_errors() -> None:
    """Dramatiq lets only its own middleware errors out of a declaration hook."""
    assert issubclass(middleware.DeclarationError, MiddlewareError)


def test_an_unknown_queue_is_dramatiqs_too() -> None:
    """Code that expects Dramatiq's error for a queue goes on working, and its text is ours."""
    error = middleware.UnknownQueue("expected its queue to be …")
    assert isinstance(error, QueueNotFound)
    assert str(error) == "expected its queue to be …"
    assert (error.refused, error.unknown) == ([], [])


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=-1)])
def test_a_snooze_takes_time(delay: timedelta) -> None:
    """A job cannot be put off by nothing: it would come back at once, for ever."""
    with pytest.raises(ValueError, match="expected delay to be above zero"):
        middleware.Snooze(delay)


def test_a_snooze_says_why() -> None:
    """Without a reason the text tells the delay."""
    assert str(middleware.Snooze(timedelta(seconds=5), "busy")) == "busy"
    assert "0:00:05" in str(middleware.Snooze(timedelta(seconds=5)))


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """The module's docstring names every exception that there is."""
    assert errors.__doc__ is not None
    for name, thing in vars(errors).items():
        if isinstance(thing, type) and issubclass(thing, Exception) and thing.__module__ == errors.__name__:
            assert name in errors.__doc__
