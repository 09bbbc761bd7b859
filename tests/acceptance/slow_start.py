"""A module of actors whose import takes until a gate opens: loaded by workers, after the application."""

from __future__ import annotations

import os
from pathlib import Path

from .seen import Gates, Seen

_folder = Path(os.environ["PROBE_FOLDER"])
Seen(_folder).note("began", "import", 0)
Gates(_folder).wait("import")
