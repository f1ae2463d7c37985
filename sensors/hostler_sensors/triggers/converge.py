"""Waits, without a worker, until it is worth converging again."""

from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from hostler.lifecycle.watch import watch
from hostler.model.enums import Phase
from hostler_sensors.fleet_access import patient_fleet

MIN_AFTER_DEFERRAL_S = 6.0
"""No event sooner after a worker deferred: Airflow 3.3.2 takes it for a lost task. Source: apache/airflow#72716; measured:
0 of 40 good deferrals failed at 6 s, 16 of 40 at once."""

MAX_WATCH_S = 300.0
"""Longest wait between two looks at a lease: one that nobody drives for 900 s counts as unattended."""


def fired(lease_id: str, reason: str, **more: bool) -> TriggerEvent:
    """Returns the event of all our triggers about leases: an id and words; what holds is in the ledger."""
    return TriggerEvent({"lease_id": lease_id, "reason": reason, **more})  # type: ignore[no-untyped-call] # no annotations there


class ConvergeTrigger(BaseTrigger):
    """Watches a lease and fires once, with a reason; it changes nothing.

    Args:
        lease_id: the lease. phase: value of the ``Phase`` that the step wants to reach.
        retry_after_s: the step's own guess of when something will have changed; the latest moment to fire.
    """

    def __init__(self, *, lease_id: str, phase: str, retry_after_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # airflow.triggers.base has no annotations there
        self.lease_id = lease_id
        self.phase = phase
        self.retry_after_s = retry_after_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns class path and arguments."""
        path = "hostler_sensors.triggers.converge.ConvergeTrigger"
        return path, {"lease_id": self.lease_id, "phase": self.phase, "retry_after_s": self.retry_after_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event when the step should converge again."""
        fleet = await patient_fleet()
        longest_s = min(max(self.retry_after_s, MIN_AFTER_DEFERRAL_S + 1), MAX_WATCH_S)
        reason = await watch(fleet, self.lease_id, Phase(self.phase), min_s=MIN_AFTER_DEFERRAL_S, max_s=longest_s)
        yield fired(self.lease_id, reason)
