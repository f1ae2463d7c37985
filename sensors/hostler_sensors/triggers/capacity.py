"""Waits, without a worker, until it is worth trying to buy."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from hostler.lifecycle.worth import worth_trying
from hostler.model.enums import CapacityType
from hostler.model.request import NodeRequest
from hostler_sensors.fleet_access import shared_fleet
from hostler_sensors.triggers.converge import MIN_AFTER_DEFERRAL_S


class CapacityTrigger(BaseTrigger):
    """Asks again and again whether a gang is worth trying, and fires when it is.

    Args:
        capacity_types, regions: comma-separated; regions empty: all. max_price_usd_per_hour: of one node, as text; empty: any.
        every_s: seconds between two looks. quiet_s: before the first one; 0 only where no worker has deferred to it.
    """

    def __init__(
        self,
        *,
        tenant: str,
        accelerator: str,
        accelerators_per_node: int,
        node_count: int,
        capacity_types: str,
        regions: str = "",
        max_price_usd_per_hour: str = "",
        every_s: float = 30.0,
        quiet_s: float = MIN_AFTER_DEFERRAL_S,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # airflow.triggers.base has no annotations there
        self._arguments: dict[str, Any] = {
            "tenant": tenant,
            "accelerator": accelerator,
            "accelerators_per_node": accelerators_per_node,
            "node_count": node_count,
            "capacity_types": capacity_types,
            "regions": regions,
            "max_price_usd_per_hour": max_price_usd_per_hour,
            "every_s": every_s,
            "quiet_s": quiet_s,
        }

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns class path and arguments."""
        return "hostler_sensors.triggers.capacity.CapacityTrigger", dict(self._arguments)

    def request(self) -> NodeRequest:
        """Returns the gang that is asked about; its cost cap plays no part here."""
        given = self._arguments
        price = given["max_price_usd_per_hour"]
        return NodeRequest(
            tenant=given["tenant"],
            accelerator=given["accelerator"],
            accelerators_per_node=given["accelerators_per_node"],
            node_count=given["node_count"],
            capacity_types=tuple(CapacityType(kind) for kind in split(given["capacity_types"])),
            regions=split(given["regions"]),
            max_cost_usd=Decimal("Infinity"),
            max_price_usd_per_hour=Decimal(price) if price else None,
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event when the gang is worth trying; its reason says what would be bought first."""
        await asyncio.sleep(self._arguments["quiet_s"])
        fleet = await shared_fleet()
        every_s = self._arguments["every_s"]
        told: tuple[str, ...] = ()
        while not (worth := await worth_trying(fleet, self.request(), max_age_s=every_s)).is_worth:
            if worth.reasons != told:  # a thousand waiters that say the same thing again and again fill a disk
                self.log.info("not worth trying: %s", "; ".join(worth.reasons))
                told = worth.reasons
            await fleet.sleep(every_s)
        yield TriggerEvent({"reason": "; ".join(worth.reasons)})  # type: ignore[no-untyped-call] # see above


def split(text: str) -> tuple[str, ...]:
    """Returns the parts of a comma-separated text; none for an empty one."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
