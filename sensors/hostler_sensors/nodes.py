"""Wait for the nodes of a lease: set up, or healthy."""

from datetime import timedelta
from typing import Any, ClassVar

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from hostler_sensors.fleet_access import work
from hostler_sensors.triggers.health import HEALTHY, READY, HealthTrigger, look


class _NodesSensor(BaseSensorOperator):
    """Looks first, then defers; fails at once when waiting cannot help.

    Args:
        lease_id: templated. max_age_s: how old the last probe may be, in seconds.
    """

    template_fields = ("lease_id",)
    wanted: ClassVar[str]

    def __init__(self, *, lease_id: str, max_age_s: float = 120.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lease_id = lease_id
        self.max_age_s = max_age_s

    def execute(self, context: Any) -> None:
        """Ends when all nodes are as wanted. Raises AirflowFailException when they never will be."""
        self.go_on(context)

    def go_on(self, context: Any, event: dict[str, Any] | None = None) -> None:
        """Looks (again): the event may be old. What many looks of the trigger have proven, one that still sees it confirms."""
        seen = work(lambda fleet: look(fleet, self.lease_id, self.wanted, self.max_age_s))
        was_proven = bool(event and event.get("is_proven"))
        if seen.is_hopeless or (was_proven and seen.is_doubtful):
            raise AirflowFailException(f"lease {self.lease_id}: {'; '.join(seen.reasons)}")
        if not seen.is_met:
            self.log.info("lease %s: %s", self.lease_id, "; ".join(seen.reasons))
            trigger = HealthTrigger(lease_id=self.lease_id, wanted=self.wanted, max_age_s=self.max_age_s)
            self.defer(trigger=trigger, method_name="go_on", timeout=timedelta(seconds=self.timeout))


class NodeReadySensor(_NodesSensor):
    """Waits until every node of the lease is set up."""

    wanted = READY


class NodeHealthySensor(_NodesSensor):
    """Waits until every node of the lease is healthy by a fresh probe; a node that does not answer is not."""

    wanted = HEALTHY
