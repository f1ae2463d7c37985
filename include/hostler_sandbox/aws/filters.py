"""EC2's filters: all names must match, one value of each; ``*``, ``?`` and the backslash are wildcards. Unknown names are refused.

Source: EC2 user guide, "Filter resources", and the list of names in the reference of each Describe call.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hostler_sandbox.aws.errors import Ec2Error

View = Mapping[str, Any]
Reader = Callable[[View], Iterable[str]]


def _path(*names: str) -> Reader:
    """Returns a reader of one member, reached by names; booleans and numbers as EC2 writes them."""

    def read(view: View) -> Iterable[str]:
        value: Any = view
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            return ()
        return (str(value).lower() if isinstance(value, bool) else str(value),)

    return read


def _each(list_name: str, *names: str) -> Reader:
    """Returns a reader of one member of every item of a list."""
    inner = _path(*names)
    return lambda view: [word for item in view.get(list_name) or () for word in inner(item)]


INSTANCE: Final[dict[str, Reader]] = {
    "architecture": _path("Architecture"),
    "availability-zone": _path("Placement", "AvailabilityZone"),
    "block-device-mapping.volume-id": _each("BlockDeviceMappings", "Ebs", "VolumeId"),
    "capacity-reservation-id": _path("CapacityReservationId"),
    "client-token": _path("ClientToken"),
    "dns-name": _path("PublicDnsName"),
    "iam-instance-profile.arn": _path("IamInstanceProfile", "Arn"),
    "image-id": _path("ImageId"),
    "instance-id": _path("InstanceId"),
    "instance-lifecycle": _path("InstanceLifecycle"),
    "instance-state-code": _path("State", "Code"),
    "instance-state-name": _path("State", "Name"),
    "instance-type": _path("InstanceType"),
    "instance.group-id": _each("SecurityGroups", "GroupId"),
    "instance.group-name": _each("SecurityGroups", "GroupName"),
    "ip-address": _path("PublicIpAddress"),
    "key-name": _path("KeyName"),
    "launch-index": _path("AmiLaunchIndex"),
    "launch-time": lambda view: (f"{view['LaunchTime']:%Y-%m-%dT%H:%M:%S}.{view['LaunchTime'].microsecond // 1000:03d}Z",),
    "network-interface.network-interface-id": _each("NetworkInterfaces", "NetworkInterfaceId"),
    "network-interface.subnet-id": _each("NetworkInterfaces", "SubnetId"),
    "placement-group-name": _path("Placement", "GroupName"),
    "private-dns-name": _path("PrivateDnsName"),
    "private-ip-address": _path("PrivateIpAddress"),
    "reason": _path("StateTransitionReason"),
    "root-device-name": _path("RootDeviceName"),
    "root-device-type": _path("RootDeviceType"),
    "spot-instance-request-id": _path("SpotInstanceRequestId"),
    "state-reason-code": _path("StateReason", "Code"),
    "subnet-id": _path("SubnetId"),
    "tenancy": _path("Placement", "Tenancy"),
    "virtualization-type": _path("VirtualizationType"),
    "vpc-id": _path("VpcId"),
}
"""The filters of DescribeInstances that the sandbox serves, beside ``tag:<key>`` and ``tag-key``."""


def matches(filters: Iterable[Mapping[str, Any]], view: View, readers: Mapping[str, Reader]) -> bool:
    """True if the view passes all filters.

    Raises:
        Ec2Error: InvalidParameterValue for a name that is not served.
    """
    return all(_passes(one.get("Name", "null"), one.get("Values", ()), view, readers) for one in filters)


def check(filters: Iterable[Mapping[str, Any]], readers: Mapping[str, Reader]) -> None:
    """Refuses unknown names, also when there is nothing to filter."""
    for one in filters:
        name = one.get("Name", "null")
        if name not in readers and name != "tag-key" and not name.startswith("tag:"):
            raise Ec2Error("InvalidParameterValue", f"The filter '{name}' is invalid")


def _passes(name: str, wanted: Iterable[str], view: View, readers: Mapping[str, Reader]) -> bool:
    if name.startswith("tag:"):
        words: Iterable[str] = [tag["Value"] for tag in view.get("Tags") or () if tag["Key"] == name[4:]]
    elif name == "tag-key":
        words = [tag["Key"] for tag in view.get("Tags") or ()]
    else:
        words = readers[name](view)
    return any(_pattern(pattern).fullmatch(word) for word in words for pattern in wanted)


@functools.lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    parts, is_literal = [], False
    for letter in text:
        if is_literal:
            parts.append(re.escape(letter))
            is_literal = False
        elif letter == "\\":
            is_literal = True
        else:
            parts.append({"*": ".*", "?": "."}.get(letter, re.escape(letter)))
    return re.compile("".join(parts), re.DOTALL)
