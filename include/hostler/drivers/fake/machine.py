"""What the fake cloud sells and what it runs: types, offerings, machines whose life follows a given clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from hostler.cloud.driver import Machine, MachineState
from hostler.model.enums import CapacityType

CLOUD = "fake"


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeType:
    """An instance type of the fake cloud. ``spot_ratio``: spot price as a part of the on-demand price."""

    name: str
    accelerator: str
    accelerator_count: int
    vcpu_count: int
    memory_mib: int
    price_usd_per_hour: Decimal
    spot_ratio: Decimal = Decimal("0.4")

    def price(self, capacity_type: CapacityType) -> Decimal:
        """Returns the price of a whole machine in USD per hour."""
        if capacity_type is CapacityType.SPOT:
            return (self.price_usd_per_hour * self.spot_ratio).quantize(Decimal("0.0001"))
        return self.price_usd_per_hour


DEFAULT_TYPES = (
    FakeType(
        name="fake.8xh100",
        accelerator="H100",
        accelerator_count=8,
        vcpu_count=192,
        memory_mib=2097152,
        price_usd_per_hour=Decimal(60),
    ),
    FakeType(
        name="fake.1xl4",
        accelerator="L4",
        accelerator_count=1,
        vcpu_count=8,
        memory_mib=32768,
        price_usd_per_hour=Decimal("0.8"),
    ),
)
"""Made-up types; the prices are no vendor's."""

DEFAULT_ZONES: Mapping[str, tuple[str, ...]] = {"fake-north": ("fake-north-a", "fake-north-b", "fake-north-c")}


@dataclass(slots=True, kw_only=True)
class FakeMachine:
    """One machine; its state is a function of its times and the clock.

    Attributes:
        visible_at: before this, get and list do not show it. runs_at: end of ``pending``.
        order_at: when its end was ordered (by us or by the cloud); None while nobody did. gone_at: when it is terminated.
        noticed_at: when the cloud announced that it will take it; None while it did not.
        off_at: when it was switched off; None while it is on. is_late: its create was answered with a refusal.
    """

    provider_id: str
    region: str
    zone: str
    kind: FakeType
    capacity_type: CapacityType
    name: str
    tags: dict[str, str]
    token: str | None
    address: str
    made_at: datetime
    visible_at: datetime
    runs_at: datetime
    order_at: datetime | None = None
    gone_at: datetime | None = None
    off_at: datetime | None = None
    noticed_at: datetime | None = None
    state_reason: str = ""
    is_late: bool = False
    user_data: str = field(default="", repr=False)

    def state(self, now: datetime) -> MachineState:
        """Returns the state at a time."""
        if self.gone_at is not None and now >= self.gone_at:
            return MachineState.TERMINATED
        if self.order_at is not None and now >= self.order_at:
            return MachineState.TERMINATING
        if self.off_at is not None and now >= self.off_at:
            return MachineState.STOPPED
        return MachineState.RUNNING if now >= self.runs_at else MachineState.PENDING

    def is_live(self, now: datetime) -> bool:
        """True while it bills: until it is terminated."""
        return self.state(now) is not MachineState.TERMINATED

    def is_listed(self, now: datetime, linger_s: float) -> bool:
        """True while get and list show it: after its list lag, and for a while after its end."""
        if now < self.visible_at:
            return False
        return self.gone_at is None or now < self.gone_at + timedelta(seconds=linger_s)

    def describe(self, now: datetime, clock_off_s: float = 0.0) -> Machine:
        """Returns what a describe call shows, with times by a clock that is so far ahead."""
        state, off = self.state(now), timedelta(seconds=clock_off_s)
        ended_at = {MachineState.TERMINATED: self.gone_at, MachineState.STOPPED: self.off_at}.get(state)
        return Machine(
            cloud=CLOUD,
            region=self.region,
            zone=self.zone,
            provider_id=self.provider_id,
            name=self.name,
            instance_type=self.kind.name,
            capacity_type=self.capacity_type,
            state=state,
            tags=dict(self.tags),
            address=None if state is MachineState.PENDING else self.address,
            launched_at=self.made_at + off,
            ended_at=None if ended_at is None else ended_at + off,
            client_token=self.token,
            state_reason=self.state_reason,
        )
