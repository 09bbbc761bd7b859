"""A worker of the kit with `charge_credit` as shipped, which counts its jobs."""

from __future__ import annotations

from jobs import charge_credit
from tests.bench.pace import paced

paced(charge_credit)
