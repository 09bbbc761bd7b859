from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from middleware.transport.acknowledgements import ChannelLink


class Broker:
    """A channel as RabbitMQ keeps it: what is delivered is open until it is settled, and no tag twice.

    Attributes:
        settled: tag → how it was settled.
        frames: how many frames that took.
    """

    def __init__(self) -> None:
        self.open: list[int] = []
        self.settled: dict[int, str] = {}
        self.frames = 0

    def deliver(self, tag: int) -> None:
        self.open.append(tag)

    def basic_ack(self, tag: int, multiple: bool = False) -> None:
        self.frames += 1
        self._settle([each for each in self.open if each <= tag] if multiple else [tag], "acked")

    def basic_nack(self, tag: int, requeue: bool) -> None:
        self.frames += 1
        self._settle([tag], "requeued" if requeue else "rejected")

    def _settle(self, tags: list[int], how: str) -> None:
        assert tags, "PRECONDITION_FAILED - unknown delivery tag"
        for tag in tags:
            assert tag in self.open, "PRECONDITION_FAILED - unknown delivery tag"
            self.open.remove(tag)
            self.settled[tag] = how


def a_link(deliveries: int) -> tuple[ChannelLink, Any]:  # Any: a channel as far as the link needs one
    """Return a link and its broker with so many open deliveries."""
    link, broker = ChannelLink(lambda settled: None), Broker()
    for tag in range(1, deliveries + 1):
        broker.deliver(tag)
        link.delivered(tag)
    return link, broker


steps = st.lists(st.sampled_from(["deliver", "ack", "requeue", "reject", "send"]), max_size=60)


@given(steps, st.randoms())
def test_every_delivery_is_settled_as_its_outcome_says(names: list[str], dice: Any) -> None:
    """In whatever order deliveries come and end, each is settled once, as it ended, and no other with it."""
    link, broker = a_link(0)
    expected: dict[int, str] = {}
    held: list[int] = []
    last = 0
    for name in names:
        if name == "deliver":
            last += 1
            broker.deliver(last)
            link.delivered(last)
            held.append(last)
        elif name == "send":
            link.send(broker)
            assert broker.settled == expected
        elif held:
            tag = held.pop(dice.randrange(len(held)))
            getattr(link, name)(tag)
            expected[tag] = {"ack": "acked", "requeue": "requeued", "reject": "rejected"}[name]
    link.send(broker)
    assert broker.settled == expected
    assert sorted(broker.open) == sorted(held)


def test_a_run_of_acknowledgements_is_one_frame() -> None:
    """What ended in order is acknowledged in one frame."""
    link, broker = a_link(100)
    for tag in range(1, 101):
        link.ack(tag)
    link.send(broker)
    assert (broker.frames, len(broker.settled)) == (1, 100)


def test_a_slow_job_does_not_hold_up_acknowledgements() -> None:
    """What ends after a delivery that is still open is acknowledged all the same."""
    link, broker = a_link(5)
    for tag in (2, 3, 5):
        link.ack(tag)
    link.send(broker)
    assert broker.settled == {2: "acked", 3: "acked", 5: "acked"}
    assert broker.open == [1, 4]


@pytest.mark.parametrize("settle", ["ack", "requeue", "reject"])
def test_a_dead_link_says_nothing(settle: str) -> None:
    """What is said after the channel went is dropped: its tags mean other deliveries by then."""
    nudged: list[int] = []
    link = ChannelLink(nudged.append)
    link.delivered(1)
    link.alive = False
    getattr(link, settle)(1)
    assert not link.settled
    assert not nudged


def test_settling_twice_counts_once() -> None:
    """A delivery that is settled again is settled as it was first."""
    link, broker = a_link(2)
    link.ack(1)
    link.reject(1)
    link.requeue(1)
    link.send(broker)
    assert broker.settled == {1: "acked"}


def test_the_consumers_thread_is_told() -> None:
    """Each settled delivery tells the thread that sends how many wait."""
    nudged: list[int] = []
    link = ChannelLink(nudged.append)
    for tag in (1, 2):
        link.delivered(tag)
        link.ack(tag)
    assert nudged == [1, 2]
    assert link.settled == 2
