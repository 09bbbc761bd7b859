"""The checks, a file for each kind of work."""
