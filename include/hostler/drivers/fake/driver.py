"""The driver of the fake cloud: the port's contract over an account in memory."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from hostler.cloud.driver import CloudDriver, Interruption, LaunchOrder, Machine, MachineState, OfferingQuery
from hostler.cloud.errors import CloudThrottledError, NodeNotFoundError, NodeNotOursError, TeardownRefusedError
from hostler.cloud.inventory import Thing, ThingKind
from hostler.cloud.session import SessionSource
from hostler.cloud.tags import DEPLOYMENT, is_foreign
from hostler.drivers.fake.cloud import FakeCloud, Fault
from hostler.drivers.fake.machine import CLOUD, FakeMachine, FakeType
from hostler.drivers.fake.things import things_of
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering


class FakeDriver:
    """Implements ``hostler.cloud.driver.CloudDriver``, ``SupportsForeignView`` and ``SupportsInventory``.

    Attributes:
        cloud: the account; several deployments may share one. Its regions and its list lag are read once, here.
    """

    def __init__(self, *, deployment: str, cloud: FakeCloud, call_budget_s: float = 60.0) -> None:
        self.name = CLOUD
        self.deployment = deployment
        self.cloud = cloud
        self.call_budget_s = call_budget_s
        self.list_lag_s = cloud.list_lag_s
        self.regions = tuple(cloud.zones)
        self._claim: Callable[[], float] | None = None

    def pace_with(self, claim: Callable[[], float]) -> None:
        """See ``SupportsPace``."""
        self._claim = claim

    def _recorded(self, call: str, subject: str, work: Callable[[Fault | None], object]) -> object:
        """Makes one call, if our own rate leaves one."""
        wait_s = 0.0 if self._claim is None else self._claim()
        if wait_s > 0:
            raise CloudThrottledError(f"{call}: not sent, our own rate of calls is used up", retry_after_s=wait_s)
        return self.cloud.recorded(call, subject, work)

    def list_offerings(self, query: OfferingQuery) -> tuple[Offering, ...]:
        """See the port."""
        return cast("tuple[Offering, ...]", self._recorded("offerings", query.accelerator, lambda _f: self._offerings(query)))

    def _offerings(self, query: OfferingQuery) -> tuple[Offering, ...]:
        kinds = [
            kind
            for kind in self.cloud.types
            if kind.accelerator == query.accelerator and kind.accelerator_count == query.accelerators_per_node
        ]
        return tuple(
            _offering(kind, region, zone, capacity_type)
            for region in (query.regions or self.regions)
            for zone in self.cloud.zones.get(region, ())
            for kind in kinds
            for capacity_type in query.capacity_types
            if capacity_type is not CapacityType.RESERVED
        )

    def launch(self, order: LaunchOrder) -> Machine:
        """See the port."""

        def _work(fault: Fault | None) -> Machine:
            return self.cloud.make(order, fault).describe(self.cloud.clock(), self.cloud.clock_off_s)

        return cast("Machine", self._recorded("launch", order.name, _work))

    def get_node(self, region: str, provider_id: str) -> Machine:
        """See the port."""
        return cast("Machine", self._recorded("get", provider_id, lambda _f: self._get(region, provider_id)))

    def _get(self, region: str, provider_id: str) -> Machine:
        now = self.cloud.clock()
        machine = self.cloud.machines.get(provider_id)
        if machine is None or machine.region != region or not machine.is_listed(now, self.cloud.linger_s):
            raise NodeNotFoundError(f"no machine {provider_id} in {region}", code="InvalidInstanceID.NotFound")
        if not self._is_ours(machine):
            raise self._not_ours(machine)
        return machine.describe(now, self.cloud.clock_off_s)

    def _not_ours(self, machine: FakeMachine) -> NodeNotFoundError:
        is_gone = machine.describe(self.cloud.clock(), self.cloud.clock_off_s).state is MachineState.TERMINATED
        kind = NodeNotFoundError if is_gone else NodeNotOursError
        return kind(f"{machine.provider_id} does not carry our tag")

    def list_nodes(self, region: str, tags: Mapping[str, str] | None = None) -> tuple[Machine, ...]:
        """See the port."""
        return cast("tuple[Machine, ...]", self._recorded("list", region, lambda _f: self._list(region, tags or {})))

    def _list(self, region: str, tags: Mapping[str, str]) -> tuple[Machine, ...]:
        now = self.cloud.clock()
        return tuple(
            machine.describe(now, self.cloud.clock_off_s)
            for machine in self.cloud.machines.values()
            if machine.region == region
            and machine.is_listed(now, self.cloud.linger_s)
            and self._is_ours(machine)
            and all(machine.tags.get(key) == value for key, value in tags.items())
        )

    def terminate(self, region: str, provider_id: str) -> None:
        """See the port."""

        def _work(_fault: Fault | None) -> None:
            machine = self.cloud.machines.get(provider_id)
            if machine is not None and machine.region != region:
                raise NodeNotFoundError(f"no machine {provider_id} in {region}", code="InvalidInstanceID.NotFound")
            if machine is not None and not self._is_ours(machine):
                raise self._not_ours(machine)
            if machine is not None and is_foreign(machine.tags, self.deployment):
                raise TeardownRefusedError(f"{provider_id} carries our tag, but another owner claims it too; ask them")
            self.cloud.order_end(provider_id)

        self._recorded("terminate", provider_id, _work)

    def list_interruptions(self, region: str) -> tuple[Interruption, ...]:
        """See the port."""
        return cast("tuple[Interruption, ...]", self._recorded("interruptions", region, lambda _f: self._notices(region)))

    def _notices(self, region: str) -> tuple[Interruption, ...]:
        now = self.cloud.clock()
        return tuple(
            Interruption(
                provider_id=machine.provider_id,
                region=region,
                kind="interruption",
                noticed_at=machine.noticed_at,
                takes_effect_at=machine.order_at,
            )
            for machine in self.cloud.machines.values()
            if machine.region == region and machine.noticed_at is not None and machine.is_live(now) and self._is_ours(machine)
        )

    def list_foreign(self, region: str) -> tuple[Machine, ...]:
        """See ``SupportsForeignView``."""
        return cast("tuple[Machine, ...]", self._recorded("foreign", region, lambda _f: self._foreign(region)))

    def _foreign(self, region: str) -> tuple[Machine, ...]:
        now = self.cloud.clock()
        return tuple(
            machine.describe(now, self.cloud.clock_off_s)
            for machine in self.cloud.machines.values()
            if machine.region == region and machine.is_listed(now, 0.0) and is_foreign(machine.tags, self.deployment)
        )

    def list_inventory(self, region: str) -> tuple[Thing, ...]:
        """See ``SupportsInventory``."""
        return cast("tuple[Thing, ...]", self.cloud.recorded("inventory", region, lambda _f: self._inventory(region)))

    def _inventory(self, region: str) -> tuple[Thing, ...]:
        live = {machine.provider_id: machine for machine in self.cloud.live() if machine.region == region}
        now = self.cloud.clock()
        parts = [part for machine in live.values() if now >= machine.visible_at for part in things_of(machine, now)]
        others = [thing for thing in self.cloud.things.values() if thing.region == region]
        return (*parts, *(thing.describe(thing.attached_to if thing.attached_to in live else None) for thing in others))

    def remove_unattached(self, region: str, kind: ThingKind, thing_id: str) -> None:
        """See ``SupportsInventory``."""

        def _work(_fault: Fault | None) -> None:
            seen = next((one for one in self._inventory(region) if (one.kind, one.thing_id) == (kind, thing_id)), None)
            if seen is None:
                raise NodeNotFoundError(f"no {kind} {thing_id} in {region}")
            if is_foreign(seen.tags, self.deployment):
                raise NodeNotOursError(f"{kind} {thing_id} is not ours")
            if seen.attached_to is not None or kind is ThingKind.MACHINE:
                raise TeardownRefusedError(f"{kind} {thing_id} is in use")
            del self.cloud.things[thing_id]

        self.cloud.recorded("remove", thing_id, _work)

    def _is_ours(self, machine: FakeMachine) -> bool:
        return machine.tags.get(DEPLOYMENT) == self.deployment


def _offering(kind: FakeType, region: str, zone: str, capacity_type: CapacityType) -> Offering:
    return Offering(
        cloud=CLOUD,
        region=region,
        zone=zone,
        instance_type=kind.name,
        capacity_type=capacity_type,
        accelerator=kind.accelerator,
        accelerator_count=kind.accelerator_count,
        vcpu_count=kind.vcpu_count,
        memory_mib=kind.memory_mib,
        price_usd_per_hour=kind.price(capacity_type),
    )


def build(*, deployment: str, settings: Any, sessions: SessionSource) -> CloudDriver:
    """Entry point ``hostler.drivers``: a driver over a fresh account on the real clock.

    Args:
        settings: nothing is read from it. sessions: not used; the account is in this process.
    """
    del settings, sessions
    return FakeDriver(deployment=deployment, cloud=FakeCloud(clock=lambda: datetime.now(UTC)))
