"""Which events somebody is told of."""

from typing import Final

NEEDS_A_PERSON: Final = (
    "backup.damaged",
    "backup.drill_failed",
    "backup.failed",
    "backup.unknown",
    "cloud.denied",
    "cost_sweep.",
    "job.failed",
    "lease.deadline_at_risk",
    "lease.failed",
    "lease.unattended",
    "ledger.restored",
    "log_rotation.",
    "node.end_refused",
    "prices.refused",
    "reap.",
    "request.refused",
    "run.late",
    "scale_down.",
    "spending.stopped",
)
"""Verbs of events that somebody is told of; an event whose verb begins so counts too."""
