"""Email: what it says, whom it may go to, and how a server takes it."""
