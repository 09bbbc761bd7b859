"""The self-check: the questions to ask before a new job, asked by a program; `jobsctl check` prints it."""

from .checking import Checked, check_sources
from .codes import CODES, Level
from .finding import Finding

__all__ = ["CODES", "Checked", "Finding", "Level", "check_sources"]
