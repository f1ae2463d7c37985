"""Volumes and addresses of the fake cloud's account. The prices are no vendor's."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from hostler.cloud.driver import MachineState
from hostler.cloud.inventory import Thing, ThingKind
from hostler.drivers.fake.machine import CLOUD, FakeMachine

USD_PER_GIB_MONTH = Decimal("0.08")
ADDRESS_USD_PER_MONTH = Decimal("3.65")
ROOT_GIB = 200


@dataclass(slots=True, kw_only=True)
class FakeThing:
    """A volume or an address. ``attached_to``: a machine's id; once that is terminated it is attached to nothing."""

    thing_id: str
    kind: ThingKind
    region: str
    tags: dict[str, str]
    made_at: datetime
    size_gib: int | None = None
    attached_to: str | None = None

    def describe(self, attached_to: str | None) -> Thing:
        """Returns what the inventory shows."""
        is_volume = self.kind is ThingKind.VOLUME
        return Thing(
            cloud=CLOUD,
            region=self.region,
            zone="",
            kind=self.kind,
            thing_id=self.thing_id,
            tags=dict(self.tags),
            attached_to=attached_to,
            words=f"{self.size_gib} GiB" if is_volume else "an address",
            size_gib=self.size_gib,
            usd_per_month=USD_PER_GIB_MONTH * (self.size_gib or 0) if is_volume else ADDRESS_USD_PER_MONTH,
            made_at=self.made_at,
        )


def things_of(machine: FakeMachine, now: datetime) -> tuple[Thing, Thing]:
    """Returns a machine and its root disk, which goes with it."""
    seen = machine.describe(now)
    body = Thing(
        cloud=CLOUD,
        region=seen.region,
        zone=seen.zone,
        kind=ThingKind.MACHINE,
        thing_id=seen.provider_id,
        tags=seen.tags,
        state=seen.state,
        name=seen.name,
        words=f"{seen.instance_type} {seen.capacity_type}",
        usd_per_hour=machine.kind.price(machine.capacity_type),
        made_at=seen.launched_at,
    )
    disk = FakeThing(
        thing_id=f"vol-{seen.provider_id}",
        kind=ThingKind.VOLUME,
        region=seen.region,
        tags=dict(seen.tags),
        made_at=machine.made_at,
        size_gib=ROOT_GIB,
    )
    return body, disk.describe(None if seen.state is MachineState.TERMINATED else seen.provider_id)
