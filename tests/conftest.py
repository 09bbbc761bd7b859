"""What every test starts from: an environment without the developer's own settings."""

from __future__ import annotations

import os

# Before any test module is imported: the application reads its settings when it is imported.
for name in [name for name in os.environ if name.startswith("JOBS_") and not name.startswith("JOBS_TEST_")]:
    del os.environ[name]
os.environ["JOBS_ENV_FILE"] = ""  # no .env is read
