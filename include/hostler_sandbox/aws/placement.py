"""Placement groups, basics. Source: EC2 API reference, CreatePlacementGroup, DescribePlacementGroups, DeletePlacementGroup."""

import secrets
import threading
from typing import Any, Final

from hostler_sandbox.aws import filters, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.instances import Instances
from hostler_sandbox.aws.moto_server import ACCOUNT
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import MachineState

_STRATEGIES: Final = ("cluster", "spread", "partition")
_READERS: Final[dict[str, filters.Reader]] = {
    "group-name": lambda view: (view["GroupName"],),
    "state": lambda view: (view["State"],),
    "strategy": lambda view: (view["Strategy"],),
}


class PlacementGroups:
    """All placement groups, by region and name. Thread-safe."""

    def __init__(self, estate: Estate, instances: Instances) -> None:
        self._estate = estate
        self._instances = instances
        self._lock = threading.Lock()
        self._groups: dict[tuple[str, str], dict[str, Any]] = {}

    def check(self, region: str, name: str) -> None:
        """Refuses a group that does not exist. Raises Ec2Error."""
        with self._lock:
            if (region, name) not in self._groups:
                raise Ec2Error("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")

    def create(self, call: Call) -> bytes:
        """Answers CreatePlacementGroup."""
        name, strategy = call.params.get("GroupName", ""), call.params.get("Strategy", "cluster")
        if strategy not in _STRATEGIES:
            raise Ec2Error("InvalidParameterValue", f"Invalid value '{strategy}' for strategy.")
        tags = [tag for spec in call.params.get("TagSpecifications", []) for tag in spec.get("Tags", [])]
        group_id = f"pg-{secrets.token_hex(8)}0"
        group = {
            "GroupName": name,
            "GroupId": group_id,
            "GroupArn": f"arn:aws:ec2:{call.region}:{ACCOUNT}:placement-group/{name}",
            "Strategy": strategy,
            "State": "available",
            "Tags": tags,
        }
        with self._lock:
            if (call.region, name) in self._groups:
                raise Ec2Error("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
            self._groups[call.region, name] = group
        return wire.answer(call.action, {"PlacementGroup": group})

    def describe(self, call: Call) -> bytes:
        """Answers DescribePlacementGroups."""
        wanted, names = call.params.get("Filters", []), call.params.get("GroupNames", [])
        filters.check(wanted, _READERS)
        for name in names:
            self.check(call.region, name)
        with self._lock:
            found = [group for (region, _), group in self._groups.items() if region == call.region]
        shown = [one for one in found if not names or one["GroupName"] in names]
        return wire.answer(call.action, {"PlacementGroups": [one for one in shown if filters.matches(wanted, one, _READERS)]})

    def delete(self, call: Call) -> bytes:
        """Answers DeletePlacementGroup: refused while instances are in it."""
        name = call.params.get("GroupName", "")
        self.check(call.region, name)
        now = self._estate.clock.now()
        for one in self._instances.of_region(call.region, now):
            if one.placement_group == name and one.machine.state is not MachineState.TERMINATED:
                raise Ec2Error("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")
        with self._lock:
            self._groups.pop((call.region, name), None)
        return wire.answer(call.action, {})

    def clear(self) -> None:
        """Forgets all groups."""
        with self._lock:
            self._groups.clear()
