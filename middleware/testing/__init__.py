"""What a team's own tests import; the fixtures are in `middleware.testing.plugin`."""

from .crash_points import CrashPoints
from .held_jobs import HeldJobs
from .isolation import isolate
from .probe import Probe

__all__ = ["CrashPoints", "HeldJobs", "Probe", "isolate"]
