"""Waits, without a worker, until the nodes of a lease are ready, or healthy."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from hostler.lifecycle.condition import Condition, Observer, nodes_healthy, nodes_ready
from hostler.lifecycle.fleet import Fleet
from hostler_sensors.fleet_access import shared_fleet
from hostler_sensors.triggers.converge import MIN_AFTER_DEFERRAL_S, fired

READY: Final = "ready"
HEALTHY: Final = "healthy"


class HealthTrigger(BaseTrigger):
    """Looks at a lease's nodes until they are as wanted or never will be; the sensor looks once more itself.

    Args:
        wanted: ``ready`` (set up) or ``healthy`` (by a probe at most ``max_age_s`` old). every_s: seconds between two looks.
    """

    def __init__(self, *, lease_id: str, wanted: str, max_age_s: float = 120.0, every_s: float = 15.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # airflow.triggers.base has no annotations there
        self.lease_id = lease_id
        self.wanted = wanted
        self.max_age_s = max_age_s
        self.every_s = every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns class path and arguments."""
        arguments = {
            "lease_id": self.lease_id,
            "wanted": self.wanted,
            "max_age_s": self.max_age_s,
            "every_s": self.every_s,
        }
        return "hostler_sensors.triggers.health.HealthTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event when waiting is over, one way or the other."""
        await asyncio.sleep(MIN_AFTER_DEFERRAL_S)
        fleet, observer = await shared_fleet(), Observer(who="hostler_sensors/health")
        while True:
            seen = await look(fleet, self.lease_id, self.wanted, self.max_age_s, observer)
            if seen.is_met or seen.is_hopeless:
                break
            await fleet.sleep(self.every_s)
        reason = "; ".join(seen.reasons) or f"all nodes are {self.wanted}"
        yield fired(self.lease_id, reason, is_proven=seen.is_hopeless)


async def look(fleet: Fleet, lease_id: str, wanted: str, max_age_s: float, observer: Observer | None = None) -> Condition:
    """Returns what is seen of the lease's nodes now; an observer remembers the looks before."""
    if wanted == HEALTHY:
        return await nodes_healthy(fleet, lease_id, max_age_s, observer)
    return nodes_ready(await asyncio.to_thread(fleet.ledger.view, lease_id))
