"""A rented machine: its states, what it costs, why it ended."""

import threading
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from hostler_sandbox.nodes_port import NodeSpec


class MachineState(StrEnum):
    """Where a machine is in its life. Source of the set: EC2 user guide, "Instance lifecycle"; other clouds' words map onto it."""

    PENDING = "pending"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"
    STOPPING = "stopping"
    STOPPED = "stopped"


ALIVE: Final = frozenset({MachineState.PENDING, MachineState.RUNNING, MachineState.STOPPING, MachineState.STOPPED})
"""States of a machine that its owner still holds."""

_SECONDS_PER_HOUR: Final = 3600


class Cause(StrEnum):
    """Who or what ended, stopped or marked a machine."""

    CALLER = "caller"
    GUEST = "guest"
    SPOT_CAPACITY = "spot-capacity"
    SPOT_PRICE = "spot-price"
    LAUNCH_FAULT = "launch-fault"
    LAUNCH_KEY = "launch-key"
    HARDWARE = "hardware"
    CAPACITY_BLOCK = "capacity-block"
    RESET = "reset"


LOSSES: Final = frozenset(Cause) - {Cause.CALLER, Cause.RESET, Cause.GUEST}
"""Causes that count as a lost node: the cloud took it. A guest that powers itself off is the owner's own doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOrder:
    """A machine asked for.

    Attributes:
        capacity_type: ``on-demand``, ``spot`` or ``reserved`` (then neither pool nor quota is asked).
        max_price: most that a spot machine may cost an hour; None: up to the on-demand price.
        dies_on_power_off: a guest's power-off ends the machine; else it stops.
        hidden_s: sandbox seconds until lists show it, beside the sandbox's own list lag.
    """

    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity_type: str
    vcpu_count: int
    max_price: Decimal | None = None
    dies_on_power_off: bool = False
    hidden_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Machine:
    """A machine that was granted. Changed only by the estate, under its lock.

    Attributes:
        paid_from_at: start of the present interval that costs; None while none does. paid_s: seconds of the intervals before.
        ended_at: when the end began: from here nothing is paid. gone_at: from here lists omit it; None while that is open.
        changed_by: cause of the last change of state; None at first.
        version: grows with every change, for caches.
        spec: what boots when pending is over; None: nothing does. node_lock: held over each call to the runtime about it.
        has_node: its node was booted. is_killed: the runtime has let it go.
    """

    machine_id: str
    order: MachineOrder
    price_usd_per_hour: Decimal
    launched_at: datetime
    visible_at: datetime
    address: str
    state: MachineState = MachineState.PENDING
    state_since_at: datetime
    paid_from_at: datetime | None
    paid_s: float = 0.0
    running_at: datetime | None = None
    ended_at: datetime | None = None
    gone_at: datetime | None = None
    changed_by: Cause | None = None
    marked_by: Cause | None = None
    marked_at: datetime | None = None
    takes_effect_at: datetime | None = None
    fails_with: Cause | None = None
    is_boot_broken: bool = False
    spec: NodeSpec | None = None
    node_lock: threading.Lock = field(default_factory=threading.Lock)
    has_node: bool = False
    is_killed: bool = False
    version: int = 0
    notes: dict[str, str] = field(default_factory=dict)

    def cost_usd(self, now: datetime) -> Decimal:
        """Returns what it has cost until now: price times the time between launch (or start) and the begin of its end or stop."""
        paid_s = self.paid_s
        if self.paid_from_at is not None:
            paid_s += max(0.0, (now - self.paid_from_at).total_seconds())
        return self.price_usd_per_hour * Decimal(str(round(paid_s, 3))) / _SECONDS_PER_HOUR

    def stop_paying(self, now: datetime) -> None:
        """Closes the interval that costs, if one is open."""
        if self.paid_from_at is not None:
            self.paid_s += max(0.0, (now - self.paid_from_at).total_seconds())
            self.paid_from_at = None
