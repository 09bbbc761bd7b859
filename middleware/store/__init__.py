"""Where the kit keeps what must not be lost: the database, its tables, its migrations."""

from .clock import Clock as Clock
from .clock import in_utc as in_utc
from .database import Store as Store
from .migrate import migrate as migrate
from .migrate import migrate_down as migrate_down
from .tables import job_intents as job_intents
from .tables import job_ledger as job_ledger
from .tables import job_maintenance as job_maintenance
from .tables import job_outbox as job_outbox
from .tables import job_submissions as job_submissions
from .tables import job_watermark as job_watermark
from .tables import metadata as metadata
from .upsert import insert_into as insert_into
