from __future__ import annotations

import logging

import pytest

from middleware.transport.reconnect import Reconnect


def test_the_first_attempt_is_made_at_once() -> None:
    """Nothing waits before anything failed."""
    assert Reconnect("c").pause() == 0


def test_pauses_grow_to_a_bound_and_are_spread() -> None:
    """Attempts slow down to one in five seconds at the slowest, at random moments."""
    reconnect = Reconnect("c")
    for failures in range(1, 40):
        reconnect.failed("refused")
        pauses = [reconnect.pause() for _ in range(50)]
        assert 0.1 <= min(pauses) <= max(pauses) <= min(5.0, 0.1 * 2**failures)
        assert len(set(pauses)) > 1


def test_a_lost_connection_is_not_sought_at_once() -> None:
    """After a loss all workers would knock at the same moment: each waits a little."""
    reconnect = Reconnect("c")
    reconnect.succeeded("here")
    reconnect.lost("reset")
    assert reconnect.pause() > 0


def test_each_change_of_state_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """However many attempts fail, there are three lines, and none for a first connection that succeeds."""
    reconnect = Reconnect("consumer critical")
    with caplog.at_level(logging.INFO):
        reconnect.succeeded("here")
        assert not caplog.records
        reconnect.lost("reset")
        for reason in ("refused", "refused", "no answer", "refused"):
            reconnect.failed(reason)
        reconnect.succeeded("there")
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[0] for line in lines] == [
        "connection.lost",
        "connection.failed",
        "connection.established",
    ]
    assert all("connection='consumer critical'" in line for line in lines)


def test_the_last_reason_is_known_while_it_lasts() -> None:
    """A sender's error can say why there is no connection."""
    reconnect = Reconnect("c")
    assert reconnect.problem == ""
    reconnect.failed("refused")
    assert reconnect.problem == "refused"
    reconnect.succeeded("here")
    assert reconnect.problem == ""
