"""What does the sample domain look like? A product's accounts, mail, chats and resources.

There are no foreign keys: a job writes what it has just read, or writes it in the transaction that read it; a
foreign key would look the row up and lock it a second time for each job.
"""

from .base import Base
from .chats import Chat, ChatMessage, ChatSummary
from .credit import Account, CreditEntry, Usage
from .mail import EmailTemplate, Event, User
from .resources import Resource, ResourceEntry

__all__ = [  # noqa: RUF022  # by concept
    "Base",
    # Credit
    "Account",
    "Usage",
    "CreditEntry",
    # Mail
    "User",
    "EmailTemplate",
    "Event",
    # Chats
    "Chat",
    "ChatMessage",
    "ChatSummary",
    # Resources
    "Resource",
    "ResourceEntry",
]
