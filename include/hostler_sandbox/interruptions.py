"""The cloud takes machines: notices, reclaims, prices that rise."""

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hostler_sandbox.state.errors import WrongStateError
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import ALIVE, Cause, Machine

_LOG = logging.getLogger(__name__)


class Interruptions:
    """Gives notice and takes machines when the notice is over.

    Source: EC2 user guide, "Spot Instance interruption notices" (two minutes; metadata ``spot/instance-action``; event
    "EC2 Spot Instance Interruption Warning") and "EC2 instance rebalance recommendations".
    """

    def __init__(self, estate: Estate, send: Callable[[str, str, dict[str, Any]], None]) -> None:
        """``send`` gives region, detail type and detail of an event to the region's event bus."""
        self._estate = estate
        self._send = send

    def interrupt(self, machine_id: str, *, notice_s: float, cause: Cause = Cause.SPOT_CAPACITY) -> Machine:
        """Gives notice and takes the machine ``notice_s`` later; 0 takes it without a word.

        Raises:
            UnknownMachineError: no such machine. WrongStateError: it is ending, or marked already.
        """
        machine = self._estate.get(machine_id)
        takes_effect_at = self._estate.clock.now() + timedelta(seconds=notice_s)
        if not self._estate.mark(machine, cause, takes_effect_at):
            raise WrongStateError(machine_id, machine.state.value)
        if notice_s > 0:
            notice = {"action": "terminate", "time": f"{takes_effect_at:%Y-%m-%dT%H:%M:%SZ}"}
            self._show(machine, "spot/instance-action", notice)
            self._bus(machine, "EC2 Spot Instance Interruption Warning", {"instance-action": "terminate"})
        self._estate.timers.later(notice_s, lambda: self._take(machine, cause))
        return machine

    def recommend_rebalance(self, machine_id: str) -> Machine:
        """Shows the rebalance recommendation; nothing is taken. Raises UnknownMachineError."""
        machine = self._estate.get(machine_id)
        notice = {"noticeTime": f"{self._estate.clock.now():%Y-%m-%dT%H:%M:%SZ}"}
        self._show(machine, "events/recommendations/rebalance", notice)
        self._bus(machine, "EC2 Instance Rebalance Recommendation", {})
        return machine

    def price_rose(self, zone: str, instance_type: str) -> list[str]:
        """Takes the zone's spot machines that would not pay the price of now, with notice; returns their ids."""
        taken = []
        for machine in self._estate.alive():
            order = machine.order
            if (order.zone, order.instance_type, order.capacity_type) != (zone, instance_type, "spot"):
                continue
            most = order.max_price or self._estate.prices.on_demand(instance_type, order.vcpu_count)
            if most >= self._estate.prices.spot(zone, instance_type, order.vcpu_count) or machine.marked_by is not None:
                continue
            self.interrupt(machine.machine_id, notice_s=120, cause=Cause.SPOT_PRICE)
            taken.append(machine.machine_id)
        return taken

    def _take(self, machine: Machine, cause: Cause) -> None:
        if machine.machine_id in self._estate.machines:
            self._estate.terminate(machine.machine_id, cause)

    def _show(self, machine: Machine, path: str, notice: dict[str, str]) -> None:
        """Shows a notice in the node's metadata; a machine that is still booting shows it as soon as it can."""
        try:
            self._estate.runtime.set_metadata(machine.machine_id, path, json.dumps(notice))
        except KeyError:
            if machine.state in ALIVE:
                self._estate.timers.later(self._estate.clock.scale, lambda: self._show(machine, path, notice))

    def _bus(self, machine: Machine, kind: str, detail: dict[str, Any]) -> None:
        self._estate.journal.add(
            "bus",
            detail_type=kind,
            source="aws.ec2",
            region=machine.order.region,
            machine_ids=[machine.machine_id],
            detail={"instance-id": machine.machine_id, **detail},
        )
        self._send(machine.order.region, kind, {"instance-id": machine.machine_id, **detail})
