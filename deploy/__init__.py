"""What runs around the kit: the virtual environment and the services. Standard library only."""

import sys

# Here, because both commands pass here first, and so early that an old Python can still say it.
if sys.version_info < (3, 11):
    sys.exit(
        "expected python3 to be 3.11 or later, got: %d.%d; name another one: make PYTHON=python3.11 …"
        % sys.version_info[:2]
    )
