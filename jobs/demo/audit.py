"""Do the books balance?

Each check compares what was submitted with what the database, the broker's dead letters, the mail server's
journal and the provider's own tally say; what the run counted itself is one side of a comparison at most.
"""

from __future__ import annotations

from .checks.chats import chats
from .checks.credit import credit
from .checks.endings import endings
from .checks.mail import mail
from .checks.resources import resources
from .findings import Check, Findings


def audit(findings: Findings) -> list[Check]:
    """Return all checks."""
    return [check for part in (endings, credit, mail, chats, resources) for check in part(findings)]
