"""EC2: which calls the sandbox answers itself, which it checks first, which moto answers alone."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from hostler_sandbox.aws import moto_server, refusals, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.describe import Describer
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.faults import LaunchFaults
from hostler_sandbox.aws.instances import Instances
from hostler_sandbox.aws.launch import Launcher
from hostler_sandbox.aws.lifecycle import Lifecycle
from hostler_sandbox.aws.moto_server import Answer, MotoFailedError, MotoServer
from hostler_sandbox.aws.placement import PlacementGroups
from hostler_sandbox.aws.reservations import Reservations
from hostler_sandbox.aws.scheduled import ScheduledEvents
from hostler_sandbox.aws.spot import SpotRequests
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.faults import Faults
from hostler_sandbox.state.machines import Machine, MachineState

_XML: Final = [("Content-Type", "text/xml;charset=UTF-8"), ("Server", "AmazonEC2")]
_UNSEEN: Final = frozenset(
    {
        "RequestSpotInstances",
        "RequestSpotFleet",
        "CreateFleet",
        "ModifyFleet",
        "ModifySpotFleetRequest",
        "RunScheduledInstances",
    }
)
"""Calls with which moto would make machines that the state model does not know."""


class Ec2Front:
    """Answers EC2's calls. Thread-safe."""

    def __init__(self, *, estate: Estate, moto: MotoServer, faults: Faults, allows_blocks: bool, ssh_port: int) -> None:
        self.estate = estate
        self.instances = Instances()
        self.events = ScheduledEvents()
        self.spot = SpotRequests(estate)
        self.reservations = Reservations(estate, allows_blocks=allows_blocks)
        self.groups = PlacementGroups(estate, self.instances)
        self._moto = moto
        self.launcher = Launcher(
            estate=estate, instances=self.instances, moto=moto, spot=self.spot, reservations=self.reservations,
            faults=LaunchFaults(faults), groups=self.groups, ssh_port=ssh_port,
        )  # fmt: skip
        describer, lifecycle = Describer(estate, self.instances, self.events), Lifecycle(estate, self.instances)
        self._lifecycle = lifecycle
        self._own: dict[str, Callable[[Call], bytes]] = {
            "RunInstances": self.launcher.run,
            "DescribeInstances": describer.instances,
            "DescribeInstanceStatus": describer.statuses,
            "TerminateInstances": lifecycle.terminate,
            "StopInstances": lifecycle.stop,
            "StartInstances": lifecycle.start,
            "RebootInstances": lifecycle.reboot,
            "DescribeSpotInstanceRequests": self.spot.describe,
            "CancelSpotInstanceRequests": self.spot.cancel,
            "DescribeSpotPriceHistory": self.spot.prices,
            "CreateCapacityReservation": self.reservations.create,
            "DescribeCapacityReservations": self.reservations.describe,
            "ModifyCapacityReservation": self.reservations.modify,
            "CancelCapacityReservation": self.reservations.cancel,
            "DescribeCapacityBlockOfferings": self.reservations.block_offers,
            "PurchaseCapacityBlock": self.reservations.buy_block,
            "CreatePlacementGroup": self.groups.create,
            "DescribePlacementGroups": self.groups.describe,
            "DeletePlacementGroup": self.groups.delete,
        }
        estate.watch(self._machine_changed)

    def clear(self) -> None:
        """Forgets what is kept beside the machines: tokens, requests, reservations, groups, events."""
        for part in (self.launcher.tokens, self.spot, self.reservations, self.groups, self.events):
            part.clear()

    def answer(self, call: Call) -> Answer:
        """Answers one call; refusals are answers too."""
        try:
            call.params = wire.parse(call.action, call.form)
            if call.action in _UNSEEN:
                raise refusals.not_served(call.action)
            if call.action in self._own:
                return 200, list(_XML), self._own[call.action](call)
            return self._pass(call)
        except Ec2Error as refusal:
            call.error = refusal.code
            return refusal.status, list(_XML), wire.error(refusal)

    def _pass(self, call: Call) -> Answer:
        """Lets moto answer; afterwards what it may have changed about instances is read again."""
        if call.action == "ModifyInstanceAttribute":
            self._lifecycle.check_change(call)
        try:
            answer = self._moto.call(call.environ, call.body)
        except MotoFailedError:
            raise refusals.not_served(call.action) from None
        if call.action in {"CreateTags", "DeleteTags"}:
            self._tagged(call)
        if not call.action.startswith(("Describe", "Get")):
            self.instances.refresh(iter(call.form.values()))
        return answer

    def _tagged(self, call: Call) -> None:
        """Tags what moto does not have, and tells nodes their new tags."""
        is_added = call.action == "CreateTags"
        tags = {tag["Key"]: tag.get("Value", "") if is_added else None for tag in call.params.get("Tags", [])}
        for resource_id in call.params.get("Resources", []):
            self.spot.set_tags(resource_id, tags)
            one = self.instances.find(resource_id)
            if one is not None and one.machine.has_node:
                self.estate.timers.work(lambda node_id=resource_id: self._show_tags(node_id, tags))  # type: ignore[misc]

    def _show_tags(self, node_id: str, tags: Mapping[str, str | None]) -> None:
        for key, value in tags.items():
            with suppress(KeyError):  # the node is gone
                self.estate.runtime.set_metadata(node_id, f"tags/instance/{key}", value)

    def _machine_changed(self, machine: Machine) -> None:
        """Keeps moto's objects and the reservations in step; called with the estate's lock held."""
        if machine.order.cloud != "aws":
            return
        one = self.instances.find(machine.machine_id)
        if one is None:
            return
        if machine.machine_id not in self.estate.machines:
            self.instances.remove(machine.machine_id)
            self.estate.timers.work(lambda: self._drop(one))
        elif machine.state is MachineState.TERMINATED:
            if one.capacity_reservation_id:
                self.reservations.give_back(one.capacity_reservation_id)
            self.estate.timers.work(lambda: self._end(one))

    def _end(self, one: Any) -> None:
        """Ends moto's instance: its disks and cards go, or stay as the launch said."""
        with self._moto.lock:
            one.moto.terminate()

    def _drop(self, one: Any) -> None:
        with self._moto.lock:
            moto_server.backend(one.region).reservations.pop(one.reservation_id, None)
