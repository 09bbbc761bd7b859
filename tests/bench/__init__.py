"""Benchmarks: ratios against a named rival, measured in one run on one machine. `make bench`."""
