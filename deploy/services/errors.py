"""What went wrong, in words for the person who typed the command."""


class CannotServe(Exception):
    """The services cannot be had or reached; the text says why and what to run. The command exits 1."""
