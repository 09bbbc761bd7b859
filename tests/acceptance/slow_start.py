"""A module of actors whose import takes until a gate opens: loaded before or after the application."""

from __future__ import annotations

import os
from pathlib import Path

from .seen import Gates, Seen

_folder = Path(os.environ["PROBE_FOLDER"])
Seen(_folder).note("began", "import", 0)
Gates(_folder).wait("import")

import jobs  # noqa: E402, F401  # sets the broker, if this is loaded before the application
