"""The state model of a simulated cloud: machines, their lives, and what may be had. Fronts only translate to and from it."""

import heapq
import itertools
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hostler_sandbox.journal import Journal
from hostler_sandbox.nodes_port import BootError, NodeRuntime, NodeSpec
from hostler_sandbox.state.boot import PowerControl, spec_of
from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.faults import Faults
from hostler_sandbox.state.machines import Machine, at
from hostler_sandbox.state.order import LaunchOrder
from hostler_sandbox.state.stock import Stock, facts_of
from hostler_sandbox.state.types import zones_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long things take, in seconds. ``forget_s``: how long a terminated machine is still listed (EC2: about an hour)."""

    pending_s: float = 1.0
    stopping_s: float = 1.0
    list_lag_s: float = 0.0
    forget_s: float = 3600.0
    notice_s: float = 120.0


class Cloud:
    """All machines of one account. Thread-safe: one lock around every change."""

    def __init__(
        self,
        nodes: NodeRuntime,
        journal: Journal,
        delays: Delays,
        ssh_port: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.nodes = nodes
        self.journal = journal
        self.delays = delays
        self.faults = Faults()
        self.stock = Stock()
        self.clock = clock
        self._ssh_port = ssh_port
        self._addresses = itertools.count(2)
        self._machines: dict[str, Machine] = {}
        self._tokens: dict[tuple[str, str, str], str] = {}
        self._lock = threading.RLock()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._wake = threading.Condition()
        self._is_open = True
        self._ticker = threading.Thread(target=self._tick, name="sandbox-clock", daemon=True)
        self._ticker.start()

    def launch(self, order: LaunchOrder) -> Machine:
        """Launches one machine, or returns that of the same token. Raises RefusedError."""
        facts = facts_of(order.instance_type)
        with self._lock:
            if order.token and (known := self._of_token(order)) is not None:
                return known
            if order.zone not in zones_of(facts, order.region):
                raise RefusedError(
                    "Unsupported",
                    f"Your requested instance type ({facts.name}) is not supported in your requested Availability Zone ({order.zone}).",
                )
            is_spot = order.capacity_type == "spot"
            self.stock.check_quota(
                facts, order.region, self._used_vcpus(facts.family, order.region, is_spot=is_spot), is_spot=is_spot
            )
            if is_spot:
                self.stock.check_spot_price(facts, order.zone, order.max_spot_price)
            self.stock.take(facts, order.zone, order.capacity_type)
            machine = self._new_machine(order)
            self._machines[machine.machine_id] = machine
            if order.token:
                self._tokens[order.region, order.zone, order.token] = machine.machine_id
        self.journal.write("machine", what="launched", **self._facts(machine))
        return machine

    def _new_machine(self, order: LaunchOrder) -> Machine:
        """Makes the machine; its node boots when ``pending`` is over."""
        facts, now = facts_of(order.instance_type), self.clock()
        machine_id = f"i-0{secrets.token_hex(8)}"
        number = next(self._addresses)
        address = f"127.1.{number // 254 % 256}.{number % 254 + 1}"
        is_broken = self.faults.take("boot_failure", "RunInstances", order.zone) is not None
        spec = spec_of(order, machine_id, address, self._ssh_port, is_broken=is_broken)
        self._later(self.delays.pending_s, lambda: self._boot(machine_id, spec))
        return Machine(
            machine_id=machine_id,
            reservation_id=f"r-{secrets.token_hex(8)}",
            region=order.region,
            zone=order.zone,
            instance_type=order.instance_type,
            capacity_type=order.capacity_type,
            usd_per_hour=self.stock.price(facts, order.zone, order.capacity_type),
            address=address,
            tags=dict(order.tags),
            launched_at=now,
            running_at=now + self.delays.pending_s,
            visible_at=now + self.delays.list_lag_s,
            token=order.token,
            fingerprint=order.fingerprint,
            image_id=order.image_id,
            subnet_id=order.subnet_id,
            group_ids=order.group_ids,
            profile_arn=order.profile_arn,
            shutdown_behaviour=order.shutdown_behaviour,
            spot_request_id=f"sir-{secrets.token_hex(4)}" if order.capacity_type == "spot" else None,
            is_protected=order.is_protected,
            is_encrypted=order.is_encrypted,
            kms_key_id=order.kms_key_id,
            http_tokens=order.http_tokens,
            user_data=order.user_data,
        )

    def _boot(self, machine_id: str, spec: NodeSpec) -> None:
        """Boots the node in a thread of its own: many may boot at once."""

        def boot() -> None:
            machine = self._machines[machine_id]
            if not machine.is_live():
                return
            try:
                self.nodes.boot(spec)
            except BootError as error:
                self.terminate(machine, "Server.InternalError", f"Server.InternalError: {error}", by="cloud")
                return
            if not machine.is_live():  # terminated while it booted
                self.nodes.kill(machine_id)

        threading.Thread(target=boot, name=f"boot-{machine_id}", daemon=True).start()

    def _of_token(self, order: LaunchOrder) -> Machine | None:
        """Returns the machine that the token made in this zone; None when the token is new there.

        Source: EC2 "Ensuring idempotency" guide; boto/boto3#4406 (token of a dead instance); ubicloud/ubicloud#5898 (other type).
        """
        known = self._tokens.get((order.region, order.zone, order.token or ""))
        if known is None:
            return None
        machine = self._machines[known]
        if machine.fingerprint != order.fingerprint:
            raise RefusedError(
                "IdempotentParameterMismatch",
                "The client token you have provided is associated with a resource with different parameters.",
            )
        if not machine.is_live():
            raise RefusedError(
                "IdempotentInstanceTerminated", "The instance that was launched with this client token has been terminated."
            )
        return machine

    def get(self, machine_id: str, region: str) -> Machine:
        """Returns a visible machine of the region. Raises RefusedError with EC2's InvalidInstanceID.NotFound."""
        with self._lock:
            machine = self._machines.get(machine_id)
            if machine is None or machine.region != region or not self._is_visible(machine):
                raise RefusedError("InvalidInstanceID.NotFound", f"The instance ID '{machine_id}' does not exist")
            return machine

    def visible(self, region: str) -> list[Machine]:
        """Returns all machines that EC2 would list in the region, oldest first."""
        with self._lock:
            return [item for item in self._machines.values() if item.region == region and self._is_visible(item)]

    def all(self) -> list[Machine]:
        """Returns every machine there ever was, oldest first; for the control API and for reports."""
        with self._lock:
            return list(self._machines.values())

    def terminate(self, machine: Machine, code: str, text: str, *, by: str) -> None:
        """Ends a machine: its node is gone on return, ``terminated`` follows after the delay. Twice is fine."""
        with self._lock:
            if not machine.is_live():
                return
            now = self.clock()
            machine.ended_at = machine.ended_at or now
            machine.terminated_at = now + self.delays.stopping_s
            machine.end_code = code
            machine.end_text = f"{text} ({at(now):%Y-%m-%d %H:%M:%S} GMT)" if code.startswith("Client.User") else text
            self.stock.give_back(machine.zone, machine.instance_type, machine.capacity_type)
        self.nodes.kill(machine.machine_id)
        self.journal.write("machine", what="terminated", by=by, reason=code, **self._facts(machine))

    def stop(self, machine: Machine) -> None:
        """Stops a machine: disk and address stay, pay for the machine ends."""
        with self._lock:
            if machine.stopped_at is not None or not machine.is_live():
                return
            now = self.clock()
            machine.paid_before_s = machine.paid_s(now)
            machine.stopped_at, machine.stop_done_at = now, now + self.delays.stopping_s
            machine.end_text = f"User initiated ({at(now):%Y-%m-%d %H:%M:%S} GMT)"
        self._power().stop(machine.machine_id)
        self.journal.write("machine", what="stopped", **self._facts(machine))

    def start(self, machine: Machine) -> None:
        """Starts a stopped machine. Raises RefusedError in any other state."""
        with self._lock:
            if machine.state(self.clock()) != "stopped":
                raise RefusedError(
                    "IncorrectInstanceState",
                    f"The instance '{machine.machine_id}' is not in a state from which it can be started.",
                )
            now = self.clock()
            machine.stopped_at = machine.stop_done_at = None
            machine.launched_at, machine.running_at = now, now + self.delays.pending_s
        self._power().resume(machine.machine_id)
        self.journal.write("machine", what="started", **self._facts(machine))

    def power_off(self, machine_id: str) -> None:
        """A guest shut itself down: terminate or stop, as its launch said."""
        with self._lock:
            machine = self._machines.get(machine_id)
        if machine is None or not machine.is_live():
            return
        if machine.shutdown_behaviour == "terminate" or machine.capacity_type == "spot":
            text = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
            self.terminate(machine, "Client.InstanceInitiatedShutdown", text, by="guest")
        else:
            self.stop(machine)

    def interrupt(self, machine: Machine, notice_s: float | None = None) -> None:
        """Gives the spot notice now and takes the machine after ``notice_s`` (None: the two minutes of EC2)."""
        now = self.clock()
        wait_s = self.delays.notice_s if notice_s is None else notice_s
        machine.reclaim_at = now + wait_s
        notice = json.dumps({"action": "terminate", "time": f"{at(machine.reclaim_at):%Y-%m-%dT%H:%M:%SZ}"})
        self.on_node(machine, lambda node: self.nodes.set_metadata(node, "spot/instance-action", notice))
        self.journal.write("machine", what="notice", **self._facts(machine))
        self._later(wait_s, lambda: self.reclaim(machine))

    def reclaim(self, machine: Machine) -> None:
        """Takes a machine back, as spot does."""
        text = "Server.SpotInstanceTermination: Spot instance termination"
        self.terminate(machine, "Server.SpotInstanceTermination", text, by="cloud")

    def reboot(self, machine: Machine) -> None:
        """Restarts the node: processes end, SSH is away for a moment."""
        self.on_node(machine, self._power().reboot)

    def on_node(self, machine: Machine, act: Callable[[str], None]) -> None:
        """Does something to a machine's node. Raises RefusedError while it has none (still pending, or ended)."""
        try:
            act(machine.machine_id)
        except KeyError as error:
            raise RefusedError("IncorrectInstanceState", f"The instance '{machine.machine_id}' is not running.") from error

    def _power(self) -> PowerControl:
        if not isinstance(self.nodes, PowerControl):
            raise RefusedError("UnsupportedOperation", "The nodes of this sandbox cannot be stopped.")
        return self.nodes

    def figures(self) -> dict[str, Any]:
        """Returns what a report needs: counts and simulated cost, from this model and the journal alone."""
        now = self.clock()
        machines = self.all()
        refused = {"InsufficientInstanceCapacity", "SpotMaxPriceTooLow", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"}
        wire = self.journal.after(kind="wire")
        return {
            "simulated": True,
            "refusals": sum(entry.get("error") in refused for entry in wire),
            "nodes_launched": len(machines),
            "nodes_lost": sum(item.end_code.startswith("Server.") for item in machines),
            "live_nodes": sum(item.is_live() for item in machines),
            "cost_usd": str(sum((item.cost_usd(now) for item in machines), Decimal(0))),
            "launch_calls": sum(entry.get("action") == "RunInstances" for entry in wire),
        }

    def close(self) -> None:
        """Stops the clock thread."""
        with self._wake:
            self._is_open = False
            self._wake.notify_all()
        self._ticker.join(timeout=5)

    def _is_visible(self, machine: Machine) -> bool:
        now = self.clock()
        is_forgotten = machine.terminated_at is not None and now > machine.terminated_at + self.delays.forget_s
        return now >= machine.visible_at and not is_forgotten

    def _used_vcpus(self, family: str, region: str, *, is_spot: bool) -> int:
        live = (
            item for item in self._machines.values() if item.is_live() and item.region == region and item.stopped_at is None
        )
        return sum(
            facts_of(item.instance_type).vcpu_count
            for item in live
            if facts_of(item.instance_type).family == family and (item.capacity_type == "spot") == is_spot
        )

    def _facts(self, machine: Machine) -> dict[str, Any]:
        return {
            "machine_id": machine.machine_id,
            "zone": machine.zone,
            "instance_type": machine.instance_type,
            "capacity_type": machine.capacity_type,
            "name": machine.tags.get("Name", ""),
            "usd_per_hour": str(machine.usd_per_hour),
        }

    def _later(self, wait_s: float, act: Callable[[], None]) -> None:
        with self._wake:
            heapq.heappush(self._due, (time.monotonic() + wait_s, next(self._numbers), act))
            self._wake.notify_all()

    def _tick(self) -> None:
        """Runs what is due; the only thread that acts by itself."""
        while True:
            with self._wake:
                if not self._is_open:
                    return
                wait_s = self._due[0][0] - time.monotonic() if self._due else 3600.0
                if wait_s > 0:
                    self._wake.wait(wait_s)
                    continue
                act = heapq.heappop(self._due)[2]
            act()
