"""`python -m middleware.cli`: jobsctl, where no script is installed."""

from . import main

main()
