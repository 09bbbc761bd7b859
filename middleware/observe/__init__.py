"""What can be seen from outside: how jobs end. Each module is one way to look."""

from .follower import UNFINISHED as UNFINISHED
from .follower import Follower as Follower
from .follower import Stuck as Stuck
