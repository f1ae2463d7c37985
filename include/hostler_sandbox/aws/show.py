"""Machines in EC2's response shapes, and EC2's filters over them."""

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.machines import Machine, at

ACCOUNT: Final = "123456789012"
STATE_CODES: Final = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


def state_of(machine: Machine, now: float) -> dict[str, Any]:
    """Returns EC2's InstanceState."""
    name = machine.state(now)
    return {"Code": STATE_CODES[name], "Name": name}


def volume_id(machine: Machine) -> str:
    """Returns the id of the root volume, derived from the machine's."""
    return "vol-" + machine.machine_id.removeprefix("i-")


def interface_id(machine: Machine) -> str:
    """Returns the id of the network interface, derived from the machine's."""
    return "eni-" + machine.machine_id.removeprefix("i-")


def instance(machine: Machine, now: float) -> dict[str, Any]:
    """Returns EC2's Instance; a terminated one has lost address, volume and interface, as on EC2."""
    shown: dict[str, Any] = {
        "InstanceId": machine.machine_id,
        "ImageId": machine.image_id,
        "State": state_of(machine, now),
        "InstanceType": machine.instance_type,
        "LaunchTime": at(machine.launched_at),
        "Placement": {"AvailabilityZone": machine.zone, "Tenancy": "default", "GroupName": ""},
        "Tags": [{"Key": key, "Value": value} for key, value in machine.tags.items()],
        "ClientToken": machine.token or "",
        "StateTransitionReason": machine.end_text if machine.end_code.startswith("Client.User") or machine.stopped_at else "",
        "MetadataOptions": {"State": "applied", "HttpTokens": machine.http_tokens, "HttpEndpoint": "enabled"},
        "RootDeviceName": "/dev/sda1",
        "RootDeviceType": "ebs",
        "Monitoring": {"State": "disabled"},
        "AmiLaunchIndex": 0,
    }
    if machine.capacity_type == "spot":
        shown |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": machine.spot_request_id}
    if machine.end_code:
        text = machine.end_text if machine.end_code.startswith("Server.") else f"{machine.end_code}: {_reason_words(machine)}"
        shown["StateReason"] = {"Code": machine.end_code, "Message": text}
    if machine.is_live():
        shown |= _attached(machine)
    return shown


def _attached(machine: Machine) -> dict[str, Any]:
    attached: dict[str, Any] = {
        "PrivateIpAddress": machine.address,
        "PublicIpAddress": machine.address,
        "SubnetId": machine.subnet_id,
        "SecurityGroups": [{"GroupId": group, "GroupName": group} for group in machine.group_ids],
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {"VolumeId": volume_id(machine), "Status": "attached", "DeleteOnTermination": True},
            }
        ],
        "NetworkInterfaces": [
            {
                "NetworkInterfaceId": interface_id(machine),
                "PrivateIpAddress": machine.address,
                "SubnetId": machine.subnet_id,
                "Status": "in-use",
            }
        ],
    }
    if machine.profile_arn:
        attached["IamInstanceProfile"] = {"Arn": machine.profile_arn, "Id": "AIPASIMULATED"}
    return attached


def _reason_words(machine: Machine) -> str:
    return "User initiated shutdown" if machine.end_code.startswith("Client.User") else "Instance initiated shutdown"


_FILTERS: Final[dict[str, Callable[[Machine, float], Iterable[str]]]] = {
    "instance-id": lambda machine, _now: [machine.machine_id],
    "instance-state-name": lambda machine, now: [machine.state(now)],
    "instance-state-code": lambda machine, now: [str(STATE_CODES[machine.state(now)])],
    "instance-type": lambda machine, _now: [machine.instance_type],
    "instance-lifecycle": lambda machine, _now: ["spot"] if machine.capacity_type == "spot" else [],
    "availability-zone": lambda machine, _now: [machine.zone],
    "client-token": lambda machine, _now: [machine.token or ""],
    "tag-key": lambda machine, _now: machine.tags,
    "image-id": lambda machine, _now: [machine.image_id],
    "subnet-id": lambda machine, _now: [machine.subnet_id],
    "private-ip-address": lambda machine, _now: [machine.address],
    "spot-instance-request-id": lambda machine, _now: [machine.spot_request_id or ""],
    "reservation-id": lambda machine, _now: [machine.reservation_id],
}
"""EC2 filter name -> the machine's values for it. Source: DescribeInstances API reference."""


def matching(machines: Iterable[Machine], filters: Iterable[Mapping[str, Any]], now: float) -> list[Machine]:
    """Returns the machines that pass every filter (values of one filter are alternatives, ``*`` and ``?`` are wild).

    Raises:
        RefusedError: EC2's InvalidParameterValue for a filter it does not know.
    """
    kept = list(machines)
    for item in filters:
        name, wanted = item["Name"], item.get("Values") or []
        if name.startswith("tag:"):
            key = name.removeprefix("tag:")
            kept = [machine for machine in kept if key in machine.tags and _fits([machine.tags[key]], wanted)]
        elif name in _FILTERS:
            kept = [machine for machine in kept if _fits(_FILTERS[name](machine, now), wanted)]
        else:
            raise RefusedError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return kept


def _fits(values: Iterable[str], wanted: Iterable[str]) -> bool:
    patterns = list(wanted)
    return any(fnmatch.fnmatchcase(value, pattern) for value in values for pattern in patterns)
