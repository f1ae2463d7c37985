"""EC2 actions that the sandbox answers from its own state. Each takes parsed parameters and gives EC2's output structure.

Sources: the EC2 API reference for shapes and codes; botocore's service model checks every request and response on the wire.
"""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from hostler_sandbox.aws.launch import Surroundings, order_of
from hostler_sandbox.aws.show import ACCOUNT, instance, matching, state_of
from hostler_sandbox.state.cloud import Cloud
from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.machines import Machine, at
from hostler_sandbox.state.types import TYPES, ZONE_LETTERS, zones_of

Params = Mapping[str, Any]
Action = Callable[[Params, str], dict[str, Any]]


class Ec2:
    """The actions, by name in ``actions``."""

    def __init__(self, cloud: Cloud, around: Surroundings) -> None:
        self._cloud = cloud
        self._around = around
        self.actions: dict[str, Action] = {
            "RunInstances": self.run_instances,
            "DescribeInstances": self.describe_instances,
            "DescribeInstanceStatus": self.describe_instance_status,
            "TerminateInstances": self.terminate_instances,
            "StopInstances": self.stop_instances,
            "StartInstances": self.start_instances,
            "RebootInstances": self.reboot_instances,
            "ModifyInstanceAttribute": self.modify_instance_attribute,
            "DescribeSpotInstanceRequests": self.describe_spot_instance_requests,
            "DescribeSpotPriceHistory": self.describe_spot_price_history,
            "DescribeInstanceTypeOfferings": self.describe_instance_type_offerings,
            "GetConsoleOutput": self.get_console_output,
        }

    def run_instances(self, params: Params, region: str) -> dict[str, Any]:
        """Launches one machine."""
        machine = self._cloud.launch(order_of(params, region, self._around))
        now = self._cloud.clock()
        return {"ReservationId": machine.reservation_id, "OwnerId": ACCOUNT, "Instances": [instance(machine, now)]}

    def describe_instances(self, params: Params, region: str) -> dict[str, Any]:
        """Lists machines; MaxResults counts instances, and excludes InstanceIds, as on EC2."""
        ids, size = params.get("InstanceIds") or [], params.get("MaxResults")
        if ids and size:
            raise RefusedError(
                "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults"
            )
        if size is not None and not 5 <= size <= 1000:  # noqa: PLR2004  # EC2's documented range
            raise RefusedError(
                "InvalidParameterValue", f"Value ( {size} ) for parameter maxResults is invalid. Expecting 5 to 1000."
            )
        now = self._cloud.clock()
        machines = [self._cloud.get(item, region) for item in ids] if ids else self._cloud.visible(region)
        found = matching(machines, params.get("Filters") or [], now)
        page, token = _page(found, size, params.get("NextToken"))
        reservations = [
            {"ReservationId": machine.reservation_id, "OwnerId": ACCOUNT, "Instances": [instance(machine, now)]}
            for machine in page
        ]
        return {"Reservations": reservations, **({"NextToken": token} if token else {})}

    def describe_instance_status(self, params: Params, region: str) -> dict[str, Any]:
        """Lists status, and scheduled events for machines that the cloud is going to take."""
        now = self._cloud.clock()
        ids = params.get("InstanceIds") or []
        machines = [self._cloud.get(item, region) for item in ids] if ids else self._cloud.visible(region)
        shown = machines if params.get("IncludeAllInstances") else [item for item in machines if item.state(now) == "running"]
        statuses = [_status(machine, now) for machine in matching(shown, params.get("Filters") or [], now)]
        return {"InstanceStatuses": statuses}

    def terminate_instances(self, params: Params, region: str) -> dict[str, Any]:
        """Terminates; nothing is done when one of the ids is unknown or protected."""
        machines = [self._cloud.get(item, region) for item in params.get("InstanceIds") or ()]
        protected = next((item for item in machines if item.is_protected), None)
        if protected:
            raise RefusedError(
                "OperationNotPermitted",
                f"The instance '{protected.machine_id}' may not be terminated. Modify its 'disableApiTermination' instance attribute "
                "and try again.",
            )
        return {"TerminatingInstances": [self._change(machine, self._terminate) for machine in machines]}

    def _terminate(self, machine: Machine) -> None:
        self._cloud.terminate(machine, "Client.UserInitiatedShutdown", "User initiated", by="api")

    def stop_instances(self, params: Params, region: str) -> dict[str, Any]:
        """Stops machines; spot machines of a one-time request cannot be stopped."""
        machines = [self._cloud.get(item, region) for item in params.get("InstanceIds") or ()]
        for machine in machines:
            if machine.capacity_type == "spot":
                raise RefusedError(
                    "UnsupportedOperation", f"You can't stop the Spot Instance '{machine.machine_id}' of a one-time request."
                )
            if not machine.is_live():
                raise _wrong_state(machine, "stopped")
        return {"StoppingInstances": [self._change(machine, self._cloud.stop) for machine in machines]}

    def start_instances(self, params: Params, region: str) -> dict[str, Any]:
        """Starts stopped machines; every other state is refused."""
        machines = [self._cloud.get(item, region) for item in params.get("InstanceIds") or ()]
        return {"StartingInstances": [self._change(machine, self._cloud.start) for machine in machines]}

    def reboot_instances(self, params: Params, region: str) -> dict[str, Any]:
        """Restarts the nodes."""
        for machine in [self._cloud.get(item, region) for item in params.get("InstanceIds") or ()]:
            self._cloud.reboot(machine)
        return {}

    def modify_instance_attribute(self, params: Params, region: str) -> dict[str, Any]:
        """Sets termination protection, shutdown behaviour, or (when stopped) the type."""
        machine = self._cloud.get(params["InstanceId"], region)
        if protection := params.get("DisableApiTermination"):
            machine.is_protected = bool(protection.get("Value"))
        if behaviour := params.get("InstanceInitiatedShutdownBehavior"):
            machine.shutdown_behaviour = behaviour["Value"]
        if new_type := params.get("InstanceType"):
            if machine.state(self._cloud.clock()) != "stopped":
                raise _wrong_state(machine, "modified")
            machine.instance_type = new_type["Value"]
        return {}

    def describe_spot_instance_requests(self, params: Params, region: str) -> dict[str, Any]:
        """Lists the one-time requests behind spot machines."""
        ids = params.get("SpotInstanceRequestIds") or []
        spot = [item for item in self._cloud.visible(region) if item.spot_request_id]
        found = [item for item in spot if not ids or item.spot_request_id in ids]
        found = matching(found, params.get("Filters") or [], self._cloud.clock())
        return {"SpotInstanceRequests": [_spot_request(machine) for machine in found]}

    def describe_spot_price_history(self, params: Params, region: str) -> dict[str, Any]:
        """Lists one price a zone and type, as of now."""
        filters = {item["Name"]: item.get("Values") or [] for item in params.get("Filters") or ()}
        names = params.get("InstanceTypes") or filters.get("instance-type") or list(TYPES)
        zone = params.get("AvailabilityZone")
        zones = [zone] if zone else filters.get("availability-zone")
        now = at(self._cloud.clock())
        rows = [
            {
                "AvailabilityZone": item,
                "InstanceType": facts.name,
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": f"{self._cloud.stock.price(facts, item, 'spot'):.6f}",
                "Timestamp": now,
            }
            for facts in (TYPES[name] for name in names if name in TYPES)
            for item in zones_of(facts, region)
            if not zones or item in zones
        ]
        return {"SpotPriceHistory": rows}

    def describe_instance_type_offerings(self, params: Params, region: str) -> dict[str, Any]:
        """Lists where types are offered, by region or by zone."""
        kind = params.get("LocationType") or "region"
        filters = {item["Name"]: item.get("Values") or [] for item in params.get("Filters") or ()}
        names = [name for name in TYPES if not filters.get("instance-type") or _matches(name, filters["instance-type"])]
        places = {name: (region,) if kind == "region" else zones_of(TYPES[name], region) for name in names}
        rows = [
            {"InstanceType": name, "LocationType": kind, "Location": place}
            for name, found in places.items()
            for place in found
            if not filters.get("location") or place in filters["location"]
        ]
        return {"InstanceTypeOfferings": rows}

    def get_console_output(self, params: Params, region: str) -> dict[str, Any]:
        """Returns the node's boot log."""
        machine = self._cloud.get(params["InstanceId"], region)
        text = f"simulated machine {machine.machine_id} ({machine.instance_type}) in {machine.zone}\n"
        return {"InstanceId": machine.machine_id, "Output": base64.b64encode(text.encode()).decode()}

    def _change(self, machine: Machine, act: Callable[[Machine], None]) -> dict[str, Any]:
        """Does something to a machine and returns EC2's InstanceStateChange."""
        before = state_of(machine, self._cloud.clock())
        act(machine)
        after = state_of(machine, self._cloud.clock())
        return {"InstanceId": machine.machine_id, "PreviousState": before, "CurrentState": after}


def _wrong_state(machine: Machine, verb: str) -> RefusedError:
    return RefusedError(
        "IncorrectInstanceState", f"The instance '{machine.machine_id}' is not in a state from which it can be {verb}."
    )


def _page(found: list[Machine], size: int | None, token: str | None) -> tuple[list[Machine], str | None]:
    """Returns one page and the token of the next; a token is opaque text, as on EC2."""
    if size is None:
        return found, None
    start = int(json.loads(base64.b64decode(token))["from"]) if token else 0
    following = start + size
    more = base64.b64encode(json.dumps({"from": following}).encode()).decode() if following < len(found) else None
    return found[start:following], more


def _status(machine: Machine, now: float) -> dict[str, Any]:
    is_ok = machine.state(now) == "running"
    summary = {"Status": "ok" if is_ok else "not-applicable"}
    shown: dict[str, Any] = {
        "InstanceId": machine.machine_id,
        "AvailabilityZone": machine.zone,
        "InstanceState": state_of(machine, now),
        "InstanceStatus": summary,
        "SystemStatus": summary,
    }
    if machine.reclaim_at is not None and machine.is_live():
        shown["Events"] = [
            {"Code": "instance-retirement", "Description": "simulated interruption", "NotBefore": at(machine.reclaim_at)}
        ]
    return shown


def _spot_request(machine: Machine) -> dict[str, Any]:
    is_live = machine.is_live()
    if is_live and machine.reclaim_at is not None:
        code = "marked-for-termination"
    elif is_live:
        code = "fulfilled"
    elif machine.end_code == "Server.SpotInstanceTermination":
        code = "instance-terminated-no-capacity"
    else:
        code = "instance-terminated-by-user"
    return {
        "SpotInstanceRequestId": machine.spot_request_id,
        "InstanceId": machine.machine_id,
        "State": "active" if is_live else "closed",
        "Status": {"Code": code, "Message": "simulated", "UpdateTime": at(machine.ended_at or machine.launched_at)},
        "Type": "one-time",
        "LaunchedAvailabilityZone": machine.zone,
        "SpotPrice": str(machine.usd_per_hour),
        "CreateTime": at(machine.launched_at),
        "Tags": [{"Key": key, "Value": value} for key, value in machine.tags.items()],
    }


def _matches(name: str, patterns: list[str]) -> bool:
    import fnmatch

    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def all_zones(region: str) -> tuple[str, ...]:
    """Returns the zones of a region."""
    return tuple(f"{region}{letter}" for letter in ZONE_LETTERS)
