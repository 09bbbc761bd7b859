"""`jobsctl`: the command line. Each module is one command, or one thing that commands share."""

from .entry import main

__all__ = ["main"]
