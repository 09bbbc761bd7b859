"""What is somebody told when a command fails?"""

from __future__ import annotations

import pytest

from middleware import EnqueueUnknown, NotEnqueued, PayloadError
from middleware.cli.problems import BAD_INPUT, FAILED, explain
from middleware.errors import ConfigurationError, EnqueueError
from middleware.transport.addresses import parse_urls
from middleware.transport.wire import Wire, WireError

ADVICE = "; check JOBS_BROKER_URL, or start a broker with `make services`"


@pytest.fixture
def away() -> WireError:
    """What a broker that is not there leads to."""
    with pytest.raises(WireError) as caught:
        Wire(parse_urls("amqp://127.0.0.1:1"), "nobody")
    return caught.value


def test_a_broker_that_is_away(away: WireError) -> None:
    """Whoever finds no broker is told what to check and how to get one."""
    assert explain(away) == (f"{away}{ADVICE}", FAILED)


@pytest.mark.parametrize("kind", [NotEnqueued, EnqueueUnknown])
def test_a_send_without_a_broker(away: WireError, kind: type[EnqueueError]) -> None:
    """The same advice follows a send whose reason is that the broker is away."""
    text, code = explain(kind(f"message 1: certainly not stored (not written within 1 s: {away})"))
    assert text.endswith(f"Connection refused){ADVICE}")
    assert code == FAILED


def test_a_send_that_the_broker_refuses() -> None:
    """A broker that answers gets no advice about its address."""
    text = "message 1: certainly not stored (not written within 1 s: the broker blocks publishing: an alarm)"
    assert explain(NotEnqueued(text)) == (text, FAILED)


@pytest.mark.parametrize("error", [PayloadError("too large"), ConfigurationError("wrong")])
def test_wrong_input_has_its_own_code(error: Exception) -> None:
    """What was typed or set wrongly exits with 2, what failed with 1."""
    assert explain(error) == (str(error), BAD_INPUT)
