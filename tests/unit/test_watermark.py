"""When may a job run on the word of an earlier reading of the watermark?"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from middleware import Queue
from middleware.effects.retention import wait_before_deleting
from middleware.effects.watermark import MOST_AHEAD, READING_AGE, YOUNG, Reading

from ..brokers import build_inline_broker

NOW: Final = 1_800_000_000_000
DAY: Final = 24 * 3600 * 1000
HOUR: Final = 3600 * 1000


@pytest.mark.parametrize(
    ("watermark", "enqueued", "age", "is_enough"),
    [
        (0, NOW, 0.0, True),
        (0, NOW, 60.0, True),
        (0, NOW, 60.1, False),
        (0, NOW - DAY, 0.0, True),
        (0, NOW - DAY - 1, 0.0, False),
        (NOW - HOUR, NOW - HOUR, 0.0, True),
        (NOW - HOUR, NOW - HOUR - 1, 0.0, False),
        (0, NOW + HOUR, 0.0, True),
        (0, NOW + HOUR + 1, 0.0, False),
        (0, 0, 0.0, False),
    ],
)
def test_a_reading_is_enough_for_young_jobs(
    watermark: int, enqueued: int, age: float, is_enough: bool
) -> None:
    """A minute long, for jobs of the last day that are not before the watermark nor in the future."""
    assert Reading(watermark, NOW, 100.0).is_enough_for(enqueued, 100.0 + age) is is_enough


def test_deletion_waits_for_longer_than_any_reading_counts() -> None:
    """A pruner waits out the longest job that may still begin on what its process has read."""
    grace = timedelta(seconds=25)
    queues = [Queue(name="short"), Queue(name="long", time_limit=timedelta(hours=2))]
    broker = build_inline_broker(queues=queues)
    assert wait_before_deleting(broker, grace) > READING_AGE + timedelta(hours=2) + grace
    broker.close()


def test_margins_are_far_from_each_other() -> None:
    """What clocks may differ by is covered several times by the age at which jobs look for themselves."""
    assert timedelta(minutes=1) <= READING_AGE < MOST_AHEAD < YOUNG
