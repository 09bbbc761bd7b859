"""The building blocks of an application's settings class: value checks, loading, refusing a start."""

from .loading import ENV_FILE, load
from .refusing import refusing_start
from .urls import BROKER_URL, DATABASE_URL, HTTP_URL, INLINE, MANAGEMENT_URL, read_by
from .values import SECRET, Refusal, duration, shown, whole_number

__all__ = [  # noqa: RUF022  # in the order of a setting's life
    # Check a value
    "whole_number",
    "duration",
    "INLINE",
    "BROKER_URL",
    "DATABASE_URL",
    "MANAGEMENT_URL",
    "HTTP_URL",
    "read_by",
    "SECRET",
    # Refuse it
    "Refusal",
    "shown",
    # Load all of them
    "ENV_FILE",
    "load",
    # Start a worker, or not
    "refusing_start",
]
