"""What is there to try the application with? Sample data for every actor."""

from .seed import seed

__all__ = ["seed"]
