"""Whose claim is it? A name for people, and unlike any other process's."""

from __future__ import annotations

import os
import secrets
import socket


def new_owner(role: str) -> str:
    """Return a name, such as `relay web-1:4711:9f2c41d0`."""
    return f"{role} {socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
