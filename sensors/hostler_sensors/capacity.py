"""Waits until a gang is worth trying to buy."""

from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.triggers.base import StartTriggerArgs

from hostler.lifecycle.worth import worth_trying
from hostler_sensors.fleet_access import work
from hostler_sensors.triggers.capacity import CapacityTrigger


class CapacityAvailableSensor(BaseSensorOperator):
    """Says when it is worth trying to buy a gang, and meanwhile why not: stock-outs met lately, the spending stop, caps.

    No cloud tells its stock of accelerators without selling: this is no promise. It waits in the triggerer from the start
    (``start_from_trigger``), so a thousand that wait hold no worker and, asking together, make no more calls than one.

    Args:
        tenant, accelerator, accelerators_per_node, node_count: as in a request. capacity_types: in order of preference.
        regions: empty: all of fleet.yaml. max_price_usd_per_hour: of one node; None: any.
    """

    template_fields = ("tenant", "accelerator")
    start_from_trigger = True

    def __init__(
        self,
        *,
        tenant: str = "default",
        accelerator: str,
        accelerators_per_node: int = 8,
        node_count: int = 1,
        capacity_types: tuple[str, ...] = ("spot", "on-demand"),
        regions: tuple[str, ...] = (),
        max_price_usd_per_hour: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tenant = tenant
        self.accelerator = accelerator
        self.accelerators_per_node = accelerators_per_node
        self.node_count = node_count
        self.capacity_types = capacity_types
        self.regions = regions
        self.max_price_usd_per_hour = max_price_usd_per_hour
        path, arguments = self._trigger().serialize()
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=path,
            trigger_kwargs={**arguments, "quiet_s": 0.0},
            next_method="go_on",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute(self, context: Any) -> str:
        """Is what ``start_from_trigger`` leaves out; the same as ``go_on``, for ``dag.test()``."""
        return self.go_on(context)

    def go_on(self, context: Any, event: dict[str, Any] | None = None) -> str:
        """Looks (again), for the event may be old: returns what would be bought first, or defers while nothing is worth it."""
        trigger = self._trigger()
        worth = work(lambda fleet: worth_trying(fleet, trigger.request()))
        if not worth.is_worth:
            self.log.info("not worth trying now: %s", "; ".join(worth.reasons))
            self.defer(trigger=trigger, method_name="go_on", timeout=timedelta(seconds=self.timeout))
        return "; ".join(worth.reasons)

    def _trigger(self) -> CapacityTrigger:
        price = self.max_price_usd_per_hour
        return CapacityTrigger(
            tenant=self.tenant,
            accelerator=self.accelerator,
            accelerators_per_node=self.accelerators_per_node,
            node_count=self.node_count,
            capacity_types=",".join(self.capacity_types),
            regions=",".join(self.regions),
            max_price_usd_per_hour="" if price is None else str(price),
            every_s=max(1.0, self.poke_interval if isinstance(self.poke_interval, (int, float)) else 30.0),
        )
