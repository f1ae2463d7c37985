"""The fake cloud's account: stock pools, quotas, tokens, machines, faults on order, and a record of every call."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from hostler.cloud.driver import LaunchOrder, MachineState
from hostler.cloud.errors import (
    AlreadyExistsError,
    CloudAuthError,
    CloudConfigError,
    CloudError,
    InsufficientCapacityError,
    NodeNotFoundError,
    QuotaExceededError,
    TeardownRefusedError,
)
from hostler.cloud.inventory import ThingKind
from hostler.drivers.fake.machine import DEFAULT_TYPES, DEFAULT_ZONES, FakeMachine, FakeType
from hostler.drivers.fake.things import FakeThing
from hostler.model.enums import CapacityType

When = Literal["before", "after", "late"]
"""When a fault strikes: before the call has its effect, after it, or instead of it with the machine coming up later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it came in, with how it ended: ``ok`` or the error's class name."""

    name: str
    at: datetime
    subject: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error for one call. ``late_s``: for ``late``, seconds until the machine that was refused comes up anyway."""

    error: CloudError
    when: When = "before"
    late_s: float = 60.0


def no_chaos(_call: str, _subject: str) -> Fault | None:
    """No fault."""
    return None


@dataclass(slots=True, kw_only=True)
class FakeCloud:
    """One account. Thread-safe. Everything it does follows ``clock``; it never waits.

    Attributes:
        zones: region -> zones. stock: (zone, type, capacity type) -> machines that may live at once; missing: no limit.
        quotas: (region, capacity type) -> vCPUs that may live at once; missing: no limit.
        boot_s, ending_s: how long a machine is ``pending`` and ``terminating``. linger_s: how long it is listed after its end.
        clock_off_s: how far the cloud's own clock, by which it tells times, is ahead of ``clock``.
        list_lag_s: how long a new machine is missing from get and list.
        denied: names of calls that are answered "not authorised". refuses_end_until: terminate is refused until then.
        chaos: asked at every call for a fault; the simulator's answers by chance.
        things: volumes and addresses beside the machines' root disks. calls: every call, oldest first.
    """

    clock: Callable[[], datetime]
    types: tuple[FakeType, ...] = DEFAULT_TYPES
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(DEFAULT_ZONES))
    stock: dict[tuple[str, str, CapacityType], int] = field(default_factory=dict)
    quotas: dict[tuple[str, CapacityType], int] = field(default_factory=dict)
    boot_s: float = 20.0
    ending_s: float = 15.0
    linger_s: float = 3600.0
    list_lag_s: float = 0.0
    clock_off_s: float = 0.0
    denied: set[str] = field(default_factory=set)
    refuses_end_until: datetime | None = None
    chaos: Callable[[str, str], Fault | None] = no_chaos
    machines: dict[str, FakeMachine] = field(default_factory=dict)
    things: dict[str, FakeThing] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    _faults: dict[str, deque[Fault]] = field(default_factory=dict)
    _tokens: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    _made: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def order_fault(self, call: str, *faults: Fault) -> None:
        """Queues faults: each meets one call of that name (``launch get list terminate offerings``), in order."""
        with self._lock:
            self._faults.setdefault(call, deque()).extend(faults)

    def guard(self, call: str, subject: str) -> Fault | None:
        """Records nothing, raises denial and faults that strike before the effect; returns one that strikes after it."""
        if call in self.denied:
            raise CloudAuthError(f"not authorised to perform {call}", code="UnauthorizedOperation")
        queue = self._faults.get(call)
        fault = queue.popleft() if queue else self.chaos(call, subject)
        if fault is not None and fault.when == "before":
            raise fault.error
        return fault

    def recorded(self, call: str, subject: str, work: Callable[[Fault | None], object]) -> object:
        """Does one call under the lock and writes down how it ended."""
        with self._lock:
            outcome = "ok"
            try:
                fault = self.guard(call, subject)
                result = work(fault)
                if fault is not None:
                    raise fault.error
            except CloudError as error:
                outcome = type(error).__name__
                raise
            else:
                return result
            finally:
                self.calls.append(Call(name=call, at=self.clock(), subject=subject, outcome=outcome))

    def make(self, order: LaunchOrder, fault: Fault | None) -> FakeMachine:
        """Makes the machine of an order, or returns the one that its token made before.

        A token is scoped to the zone, stands for one set of parameters, and stays bound to a dead machine, as on AWS.
        Source: EC2 user guide, "Ensuring idempotency in Amazon EC2 API requests".
        """
        key = (order.offering.zone, order.client_token)
        shape = f"{order.offering.key}/{sorted(order.tags.items())}/{order.user_data}"
        if key in self._tokens:
            return self._by_token(key, shape)
        kind = self._kind(order)
        self._check_quota(order, kind)
        self._check_stock(order, kind)
        late_s = fault.late_s if fault is not None and fault.when == "late" else 0.0
        machine = self._add(order, kind, late_s)
        self._tokens[key] = (shape, machine.provider_id)
        return machine

    def _by_token(self, key: tuple[str, str], shape: str) -> FakeMachine:
        made_shape, provider_id = self._tokens[key]
        machine = self.machines[provider_id]
        if made_shape != shape:
            raise AlreadyExistsError("the token was used with other parameters", code="IdempotentParameterMismatch")
        if machine.state(self.clock()) in {MachineState.TERMINATING, MachineState.TERMINATED}:
            raise AlreadyExistsError(f"the token's machine {provider_id} is dead", code="IdempotentInstanceTerminated")
        return machine

    def _kind(self, order: LaunchOrder) -> FakeType:
        kind = next((kind for kind in self.types if kind.name == order.offering.instance_type), None)
        if kind is None or order.offering.zone not in self.zones.get(order.offering.region, ()):
            raise CloudConfigError(f"no {order.offering.instance_type} in {order.offering.zone}", code="InvalidParameterValue")
        return kind

    def _check_quota(self, order: LaunchOrder, kind: FakeType) -> None:
        offering = order.offering
        limit = self.quotas.get((offering.region, offering.capacity_type))
        used = sum(
            m.kind.vcpu_count for m in self.live() if (m.region, m.capacity_type) == (offering.region, offering.capacity_type)
        )
        if limit is not None and used + kind.vcpu_count > limit:
            text = f"{used} of {limit} vCPU in use, {kind.vcpu_count} asked"
            raise QuotaExceededError(text, code="VcpuLimitExceeded", quota=f"{offering.capacity_type} vCPU", unit="vCPU")

    def _check_stock(self, order: LaunchOrder, kind: FakeType) -> None:
        pool = (order.offering.zone, kind.name, order.offering.capacity_type)
        used = sum(1 for m in self.live() if (m.zone, m.kind.name, m.capacity_type) == pool)
        if used >= self.stock.get(pool, used + 1):
            raise InsufficientCapacityError(f"no {kind.name} left in {pool[0]}", code="InsufficientInstanceCapacity")

    def _add(self, order: LaunchOrder, kind: FakeType, late_s: float) -> FakeMachine:
        self._made += 1
        now = self.clock() + timedelta(seconds=late_s)
        machine = FakeMachine(
            provider_id=f"i-{self._made:08x}",
            region=order.offering.region,
            zone=order.offering.zone,
            kind=kind,
            capacity_type=order.offering.capacity_type,
            name=order.name,
            tags=dict(order.tags),
            token=order.client_token,
            address=f"10.{self._made >> 16 & 255}.{self._made >> 8 & 255}.{self._made & 255}",
            made_at=now,
            visible_at=now + timedelta(seconds=self.list_lag_s),
            runs_at=now + timedelta(seconds=self.boot_s),
            is_late=late_s > 0,
            user_data=order.user_data,
        )
        self.machines[machine.provider_id] = machine
        return machine

    def live(self) -> list[FakeMachine]:
        """Returns machines that bill now; those that come up later are not among them yet."""
        now = self.clock()
        return [machine for machine in self.machines.values() if machine.made_at <= now and machine.is_live(now)]

    def end(self, provider_id: str, reason: str) -> None:
        """Begins the end of a machine: an order of its owner, or the cloud taking it."""
        with self._lock:
            machine = self.machines[provider_id]
            now = self.clock()
            if machine.order_at is None or machine.order_at > now:
                machine.order_at, machine.state_reason = now, reason
                machine.gone_at = now + timedelta(seconds=self.ending_s)

    def order_end(self, provider_id: str) -> None:
        """What terminate does. Raises NodeNotFoundError, TeardownRefusedError."""
        now = self.clock()
        machine = self.machines.get(provider_id)
        if machine is None or not machine.is_listed(now, self.linger_s) or not machine.is_live(now):
            raise NodeNotFoundError(f"no machine {provider_id}", code="InvalidInstanceID.NotFound")
        if self.refuses_end_until is not None and now < self.refuses_end_until:
            raise TeardownRefusedError(f"{provider_id} cannot be ended now", code="InternalError")
        self.end(provider_id, "Client.UserInitiatedShutdown")

    def reclaim(self, provider_id: str) -> None:
        """The cloud takes a spot machine."""
        self.end(provider_id, "Server.SpotInstanceTermination")

    def announce(self, provider_id: str, notice_s: float) -> None:
        """The cloud says that it will take a machine, and does so when the notice is over."""
        with self._lock:
            machine = self.machines[provider_id]
            if machine.order_at is None:
                machine.noticed_at = self.clock()
                machine.order_at = self.clock() + timedelta(seconds=notice_s)
                machine.gone_at = machine.order_at + timedelta(seconds=self.ending_s)
                machine.state_reason = "Server.SpotInstanceTermination"

    def switch_off(self, provider_id: str) -> None:
        """Somebody stops a machine in the console."""
        with self._lock:
            self.machines[provider_id].off_at = self.clock()
            self.machines[provider_id].state_reason = "Client.UserInitiatedShutdown"

    def put_machine(
        self, tags: Mapping[str, str], *, region: str | None = None, age_s: float = 0.0, name: str = ""
    ) -> FakeMachine:
        """Somebody else makes a machine, with whatever tags."""
        with self._lock:
            region = region or next(iter(self.zones))
            self._made += 1
            at = self.clock() - timedelta(seconds=age_s)
            machine = FakeMachine(
                provider_id=f"i-{self._made:08x}",
                region=region,
                zone=self.zones[region][0],
                kind=self.types[0],
                capacity_type=CapacityType.ON_DEMAND,
                name=name,
                tags=dict(tags),
                token=None,
                address=f"10.255.0.{self._made & 255}",
                made_at=at,
                visible_at=at,
                runs_at=at,
            )
            self.machines[machine.provider_id] = machine
            return machine

    def put_thing(
        self,
        kind: ThingKind,
        tags: Mapping[str, str],
        *,
        size_gib: int | None = None,
        attached_to: str | None = None,
        region: str | None = None,
    ) -> FakeThing:
        """Somebody makes a volume or an address."""
        with self._lock:
            self._made += 1
            thing = FakeThing(
                thing_id=f"{kind[:3]}-{self._made:08x}",
                kind=kind,
                region=region or next(iter(self.zones)),
                tags=dict(tags),
                made_at=self.clock(),
                size_gib=size_gib,
                attached_to=attached_to,
            )
            self.things[thing.thing_id] = thing
            return thing
