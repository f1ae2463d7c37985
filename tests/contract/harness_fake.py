from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tests.contract.harness import Call, Power

from hostler.cloud.driver import LaunchOrder, OfferingQuery
from hostler.cloud.errors import AnswerLostError, CloudThrottledError, CloudUnavailableError
from hostler.cloud.tags import tags_for
from hostler.drivers.fake.cloud import FakeCloud, Fault
from hostler.drivers.fake.driver import FakeDriver
from hostler.model.enums import CapacityType
from hostler.model.lease import client_token_for, intent_id_for


class FakeUnderTest:
    region = "fake-north"
    zones = ("fake-north-a", "fake-north-b", "fake-north-c")
    deployment = "test-deployment"
    retry_after_s = 3
    powers: frozenset[Power] = frozenset({"tokens", "stock", "quota", "lag", "zones", "take"})

    def __init__(self) -> None:
        self._now = datetime(2026, 12, 1, 12, tzinfo=UTC)
        self.cloud = FakeCloud(clock=lambda: self._now)
        self.driver = FakeDriver(deployment=self.deployment, cloud=self.cloud)

    def query(self) -> OfferingQuery:
        return OfferingQuery(
            accelerator="L4", accelerators_per_node=1, capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND)
        )

    def order(
        self,
        *,
        slot: int = 0,
        attempt: int = 1,
        lease: str = "lease0",
        zone: str | None = None,
        kind: CapacityType = CapacityType.SPOT,
    ) -> LaunchOrder:
        wanted = zone or self.zones[0]
        offering = next(
            offer for offer in self.driver.list_offerings(self.query()) if (offer.zone, offer.capacity_type) == (wanted, kind)
        )
        intent_id = intent_id_for(lease, slot, attempt)
        tags = tags_for(
            deployment=self.deployment, lease_id=lease, slot_index=slot, intent_id=intent_id, tenant="vision", extra={}
        )
        return LaunchOrder(
            name=intent_id,
            client_token=client_token_for(intent_id, offering.key),
            offering=offering,
            tags=tags,
            user_data="#cloud-config\n",
        )

    def live_ids(self) -> frozenset[str]:
        return frozenset(machine.provider_id for machine in self.cloud.live() if machine.order_at is None)

    def put_foreign(self, tags: Mapping[str, str]) -> str:
        return self.cloud.put_machine(tags).provider_id

    def settle(self) -> None:
        self._now += timedelta(seconds=60)

    def calls(self, call: Call) -> int:
        return sum(1 for made in self.cloud.calls if made.name == call)

    def throttle(self, call: Call) -> None:
        self.cloud.order_fault(call, Fault(error=CloudThrottledError("rate", code="RequestLimitExceeded", retry_after_s=3)))

    def break_down(self, call: Call) -> None:
        self.cloud.order_fault(call, Fault(error=CloudUnavailableError("internal", code="InternalError")))

    def deny(self, *calls: Call) -> None:
        self.cloud.denied.update(calls)

    def lose_answer(self) -> None:
        self.cloud.order_fault("launch", Fault(error=AnswerLostError("cut"), when="after"))

    def empty(self, zone: str) -> None:
        kind = self.order(zone=zone).offering.instance_type
        self.cloud.stock[(zone, kind, CapacityType.SPOT)] = 0

    def limit(self, machines: int) -> None:
        room = machines * self.order().offering.vcpu_count
        self.cloud.quotas[(self.region, CapacityType.ON_DEMAND)] = room

    def lag(self) -> None:
        self.cloud.list_lag_s = 30

    def take(self, provider_id: str) -> None:
        self.cloud.reclaim(provider_id)
