"""How long does a Retry-After ask to wait?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from jobs.chats.model import _retry_after_ms


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        (None, None),
        ("0", None),
        ("-5", None),
        ("7", 7000),
        (" 7 ", 7000),
        ("+7", None),
        ("1_0", None),
        ("7.5", None),
        ("١٢", None),
        ("１２", None),
        ("²", None),
        ("", None),
        ("9" * 5000, None),
        ("soon", None),
        ("Thu, 01 Jan ٢٠٩٩ 00:00:00 GMT", None),
        ("99999999999999999999", None),
        ("31536000", 30 * 24 * 3600 * 1000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Thu, 01 Jan 99999999999 00:00:00 GMT", None),
        ("Thu, 01 Jan 2026 00:00:00 +99999999999999999999", None),
    ],
)
def test_retry_after_is_read_with_caution(header: str | None, wait_ms: int | None) -> None:
    """Retry-After counts if it names a time to come, up to the longest delay that can be sent."""
    assert _retry_after_ms(header) == wait_ms


def test_retry_after_may_be_a_date() -> None:
    """A date is turned into the time until then."""
    wait_ms = _retry_after_ms(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    assert wait_ms is not None
    assert 85_000 < wait_ms <= 90_000
