"""Where the kit keeps what must not be lost: the database, its tables, its migrations."""

from .database import Store as Store
from .migrate import migrate as migrate
from .migrate import migrate_down as migrate_down
from .tables import job_intents as job_intents
from .tables import job_ledger as job_ledger
from .tables import metadata as metadata
