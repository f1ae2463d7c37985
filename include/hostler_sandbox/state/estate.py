"""The estate: every machine of the sandbox, from the order to the end. One lock; long work happens outside of it."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from hostler_sandbox.addresses import Addresses
from hostler_sandbox.clock import SandboxClock
from hostler_sandbox.journal import Journal
from hostler_sandbox.nodes_port import BootError, NodeRuntime, NodeSpec
from hostler_sandbox.nodes_power import SupportsPower
from hostler_sandbox.state.errors import NoStockError, PriceTooLowError, QuotaError, UnknownMachineError, WrongStateError
from hostler_sandbox.state.machines import ALIVE, LOSSES, Cause, Machine, MachineOrder, MachineState
from hostler_sandbox.state.pools import Pools
from hostler_sandbox.state.prices import Prices
from hostler_sandbox.state.quotas import Quotas
from hostler_sandbox.state.timers import Timers

_LOG = logging.getLogger(__name__)
ENDING: Final = frozenset({MachineState.SHUTTING_DOWN, MachineState.TERMINATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long things take, in sandbox seconds.

    Attributes:
        pending_s, shutting_down_s, stopping_s: how long a machine stays in these states at least.
        list_lag_s: how long a new machine is missing from lists. listed_s: how long a terminated one is still listed.
        boot_s: from running to the open SSH port.
    """

    pending_s: float = 2.0
    shutting_down_s: float = 2.0
    stopping_s: float = 2.0
    list_lag_s: float = 0.0
    listed_s: float = 3600.0
    boot_s: float = 0.5


class Estate:
    """All machines. Thread-safe.

    Args:
        runtime: where nodes run. on_change: called with a machine after each change, with the lock held: must be quick.
    """

    def __init__(
        self, *, clock: SandboxClock, journal: Journal, timers: Timers, pools: Pools, runtime: NodeRuntime, delays: Delays
    ) -> None:
        self.clock = clock
        self.journal = journal
        self.timers = timers
        self.pools = pools
        self.quotas = Quotas()
        self.prices = Prices()
        self.runtime = runtime
        self.delays = delays
        self.lock = threading.RLock()
        self._addresses = Addresses()
        self.machines: dict[str, Machine] = {}
        self.settled_cost_usd = Decimal(0)
        self.settled_count = 0
        self._watchers: list[Callable[[Machine], None]] = []

    def watch(self, watcher: Callable[[Machine], None]) -> None:
        """Calls ``watcher`` after each change of a machine, with the lock held: it must be quick."""
        self._watchers.append(watcher)

    # -- launch ---------------------------------------------------------------------------------------------------------------

    def check(self, order: MachineOrder) -> Decimal:
        """Takes quota, price and stock for a machine and returns its price.

        Raises:
            QuotaError, PriceTooLowError, NoStockError: nothing was taken.
        """
        if order.capacity_type == "reserved":
            return self.prices.on_demand(order.instance_type, order.vcpu_count)
        price = self._price(order)
        limit = self.quotas.take(order.region, order.instance_type, order.capacity_type, order.vcpu_count)
        if limit is not None:
            raise QuotaError(limit)
        if not self.pools.take(order.region, (order.zone, order.instance_type, order.capacity_type)):
            self._return_quota(order)
            others = self.pools.stocked_zones(order.region, order.instance_type, order.capacity_type)
            raise NoStockError(order.zone, tuple(zone for zone in others if zone != order.zone))
        return price

    def give_back(self, order: MachineOrder) -> None:
        """Undoes ``check`` for a machine that was not made after all."""
        if order.capacity_type != "reserved":
            self._return_quota(order)
            self.pools.give_back(order.region, (order.zone, order.instance_type, order.capacity_type))

    def add(
        self, machine_id: str, order: MachineOrder, price: Decimal, *, fails_with: Cause | None = None, **facts: str
    ) -> Machine:
        """Makes the machine for what ``check`` took; it is pending. ``facts`` go into the journal."""
        now = self.clock.now()
        hidden_s = max(order.hidden_s, self.delays.list_lag_s)
        machine = Machine(
            machine_id=machine_id,
            order=order,
            price_usd_per_hour=price,
            launched_at=now,
            visible_at=now + timedelta(seconds=hidden_s),
            state_since_at=now,
            paid_from_at=now,
            fails_with=fails_with,
            address=self._addresses.take(),
        )
        with self.lock:
            self.machines[machine_id] = machine
            self._tell(machine, "launched", price_usd_per_hour=str(price), **facts)
        self.timers.later(self.delays.pending_s, lambda: self._pending_over(machine))
        return machine

    def plan_boot(self, machine: Machine, spec: NodeSpec) -> None:
        """Keeps what is to boot when pending is over."""
        with self.lock:
            machine.spec = spec

    def _pending_over(self, machine: Machine) -> None:
        with self.lock:
            if machine.state is not MachineState.PENDING:
                return
            if machine.fails_with is None:
                machine.running_at = self.clock.now()
                self._enter(machine, MachineState.RUNNING, None)
                is_first = not machine.has_node
                if machine.spec is not None and is_first:
                    self.timers.later(self.delays.boot_s, lambda: self.timers.work(lambda: self._boot(machine)))
                elif machine.spec is not None:
                    self._power(machine, "resume")
                return
        self._end(machine, machine.fails_with)

    def _boot(self, machine: Machine) -> None:
        with machine.node_lock:
            if machine.state is not MachineState.RUNNING or machine.spec is None:
                return
            try:
                self.runtime.boot(machine.spec)
            except BootError as error:
                _LOG.warning("node %s: %s", machine.machine_id, error)
                machine.notes["boot_error"] = str(error)
            else:
                with self.lock:
                    machine.has_node = True
                self.journal.add("node", event="booted", machine_id=machine.machine_id, address=machine.address)
                return
        self._end(machine, Cause.LAUNCH_FAULT)

    def _power(self, machine: Machine, order: str) -> None:
        """Has a node stopped, resumed or rebooted, where the runtime can; it has no node while it boots."""
        runtime = self.runtime
        if not isinstance(runtime, SupportsPower) or not machine.has_node:
            return

        def do() -> None:
            with machine.node_lock:
                if machine.state not in ENDING:
                    getattr(runtime, order)(machine.machine_id)

        self.timers.work(do)

    def reboot(self, machine: Machine) -> None:
        """Restarts the node."""
        self._power(machine, "reboot")

    # -- end, stop, start -----------------------------------------------------------------------------------------------------

    def terminate(self, machine_id: str, cause: Cause) -> MachineState:
        """Begins the end of a machine; fine on one that is ending. Returns the state before. Raises UnknownMachineError."""
        machine = self.get(machine_id)
        before = machine.state
        self._end(machine, cause)
        return before

    def _end(self, machine: Machine, cause: Cause) -> None:
        with self.lock:
            if machine.state in ENDING:
                return
            was_stopped = machine.state is MachineState.STOPPED
            machine.ended_at = self.clock.now()
            machine.stop_paying(machine.ended_at)
            self._enter(machine, MachineState.SHUTTING_DOWN, cause)
            self._tell(machine, "lost" if cause in LOSSES else "ended", cause=cause.value)
        delay_s = 0.0 if was_stopped else self.delays.shutting_down_s
        self.timers.work(lambda: self._kill(machine))
        self.timers.later(delay_s, lambda: self._ending_over(machine, was_stopped=was_stopped))

    def _kill(self, machine: Machine) -> None:
        with machine.node_lock:
            self.runtime.kill(machine.machine_id)
        with self.lock:
            machine.is_killed = True
            self._addresses.give_back(machine.address)

    def _ending_over(self, machine: Machine, *, was_stopped: bool) -> None:
        with self.lock:
            if machine.state is not MachineState.SHUTTING_DOWN:
                return
            if not machine.is_killed:
                # Terminated must mean that nothing of it runs any more.
                self.timers.later(0.02 * self.clock.scale, lambda: self._ending_over(machine, was_stopped=was_stopped))
                return
            machine.gone_at = self.clock.now() + timedelta(seconds=self.delays.listed_s)
            self._enter(machine, MachineState.TERMINATED, machine.changed_by)
        if not was_stopped:
            self._release(machine)
        self.timers.later(self.delays.listed_s, lambda: self._forget(machine))

    def _release(self, machine: Machine) -> None:
        """Gives quota back, and stock unless the cloud took the machine: then somebody else has it."""
        if machine.changed_by in {Cause.SPOT_CAPACITY, Cause.SPOT_PRICE, Cause.HARDWARE}:
            if machine.order.capacity_type != "reserved":
                self._return_quota(machine.order)
            return
        self.give_back(machine.order)

    def _forget(self, machine: Machine) -> None:
        with self.lock:
            if self.machines.pop(machine.machine_id, None):
                self.settled_cost_usd += machine.cost_usd(self.clock.now())
                self.settled_count += 1
                machine.version += 1
                self._notify(machine)

    def stop(self, machine_id: str, cause: Cause) -> MachineState:
        """Stops a running machine; fine on one that is stopped. Returns the state before.

        Raises:
            UnknownMachineError, WrongStateError: nothing was done.
        """
        with self.lock:
            machine = self.get(machine_id)
            before = machine.state
            if before in {MachineState.STOPPING, MachineState.STOPPED}:
                return before
            if before is not MachineState.RUNNING:
                raise WrongStateError(machine_id, before.value)
            machine.stop_paying(self.clock.now())
            self._enter(machine, MachineState.STOPPING, cause)
        self._power(machine, "stop")
        self.timers.later(self.delays.stopping_s, lambda: self._stopping_over(machine))
        return before

    def _stopping_over(self, machine: Machine) -> None:
        with self.lock:
            if machine.state is not MachineState.STOPPING:
                return
            self._enter(machine, MachineState.STOPPED, machine.changed_by)
        self.give_back(machine.order)

    def start(self, machine_id: str) -> MachineState:
        """Starts a stopped machine; fine on one that runs. Returns the state before.

        Raises:
            UnknownMachineError, WrongStateError, QuotaError, NoStockError: it stays stopped.
        """
        machine = self.get(machine_id)
        if machine.state in {MachineState.PENDING, MachineState.RUNNING}:
            return machine.state
        if machine.state is not MachineState.STOPPED:
            raise WrongStateError(machine_id, machine.state.value)
        self.check(machine.order)
        with self.lock:
            machine.paid_from_at = self.clock.now()
            self._enter(machine, MachineState.PENDING, None)
        self.timers.later(self.delays.pending_s, lambda: self._pending_over(machine))
        return MachineState.STOPPED

    def power_off(self, machine_id: str) -> None:
        """The guest powered itself off: the machine ends or stops, as its order says."""
        with self.lock:
            machine = self.machines.get(machine_id)
            if machine is None or machine.state not in {MachineState.PENDING, MachineState.RUNNING}:
                return
            dies = machine.order.dies_on_power_off or machine.state is MachineState.PENDING
        if dies:
            self._end(machine, Cause.GUEST)
        else:
            self.stop(machine_id, Cause.GUEST)

    # -- views ----------------------------------------------------------------------------------------------------------------

    def get(self, machine_id: str) -> Machine:
        """Returns a machine, hidden ones too. Raises UnknownMachineError."""
        with self.lock:
            machine = self.machines.get(machine_id)
        if machine is None:
            raise UnknownMachineError(machine_id)
        return machine

    def alive(self) -> list[Machine]:
        """Returns the machines that are held, oldest first."""
        with self.lock:
            return [machine for machine in self.machines.values() if machine.state in ALIVE]

    def changed(self, machine: Machine) -> None:
        """Says that something about a machine changed that its state does not show."""
        with self.lock:
            machine.version += 1
            self._notify(machine)

    def mark(self, machine: Machine, cause: Cause, takes_effect_at: datetime) -> bool:
        """Marks a machine that the cloud will take; False when it is ending or marked already."""
        with self.lock:
            if machine.state not in ALIVE or machine.marked_by is not None:
                return False
            machine.marked_by, machine.marked_at, machine.takes_effect_at = cause, self.clock.now(), takes_effect_at
            machine.version += 1
            self._tell(machine, "marked", cause=cause.value, takes_effect_at=takes_effect_at.isoformat())
            self._notify(machine)
            return True

    def _price(self, order: MachineOrder) -> Decimal:
        on_demand = self.prices.on_demand(order.instance_type, order.vcpu_count)
        if order.capacity_type != "spot":
            return on_demand
        spot = self.prices.spot(order.zone, order.instance_type, order.vcpu_count)
        most = on_demand if order.max_price is None else order.max_price
        if most < spot:
            raise PriceTooLowError(most, spot)
        return spot

    def _return_quota(self, order: MachineOrder) -> None:
        self.quotas.give_back(order.region, order.instance_type, order.capacity_type, order.vcpu_count)

    def _enter(self, machine: Machine, state: MachineState, cause: Cause | None) -> None:
        machine.state, machine.state_since_at, machine.changed_by = state, self.clock.now(), cause
        machine.version += 1
        self._tell(machine, state.value, by=cause.value if cause else "cloud")
        self._notify(machine)

    def _notify(self, machine: Machine) -> None:
        for watcher in self._watchers:
            watcher(machine)

    def _tell(self, machine: Machine, event: str, **facts: str) -> None:
        order = machine.order
        self.journal.add(
            "machine", event=event, machine_id=machine.machine_id, cloud=order.cloud, zone=order.zone,
            instance_type=order.instance_type, capacity_type=order.capacity_type, **facts,
        )  # fmt: skip
