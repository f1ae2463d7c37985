"""The front's own index of instances, and how EC2 shows one. Lists are answered from here: moto's are quadratic in their number."""

import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from hostler_sandbox.aws import wire
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.moto_server import ACCOUNT, backend
from hostler_sandbox.aws.refusals import malformed_instance, unknown_instances
from hostler_sandbox.state.machines import Cause, Machine, MachineState

STATE_CODES: Final = {
    MachineState.PENDING: 0,
    MachineState.RUNNING: 16,
    MachineState.SHUTTING_DOWN: 32,
    MachineState.TERMINATED: 48,
    MachineState.STOPPING: 64,
    MachineState.STOPPED: 80,
}
"""Source: EC2 API reference, InstanceState."""

_REASONS: Final = {
    Cause.CALLER: ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"),
    Cause.RESET: ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"),
    Cause.GUEST: ("Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"),
    Cause.SPOT_CAPACITY: ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Instance terminated"),
    Cause.SPOT_PRICE: ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Instance terminated"),
    Cause.LAUNCH_FAULT: ("Server.InternalError", "Server.InternalError: Internal error on launch"),
    Cause.LAUNCH_KEY: ("Client.InternalError", "Client.InternalError: Client error on launch"),
    Cause.HARDWARE: ("Server.ScheduledStop", "Server.ScheduledStop: Stopped due to a scheduled retirement"),
    Cause.CAPACITY_BLOCK: ("Server.InsufficientInstanceCapacity", "Server.InsufficientInstanceCapacity: The reservation ended"),
}
"""Source: EC2 API reference, StateReason."""

_TIMED: Final = frozenset({Cause.CALLER, Cause.RESET})
_DOWN: Final = frozenset({MachineState.SHUTTING_DOWN, MachineState.TERMINATED, MachineState.STOPPING, MachineState.STOPPED})


@dataclass(slots=True, kw_only=True)
class Instance:
    """An instance: the machine, and what only EC2 has of it.

    Attributes:
        number: grows with every instance; the order of lists. moto: moto's object, for disks, cards and groups.
        request_id: the spot request it came from; None for others.
    """

    number: int
    machine: Machine
    moto: Any
    reservation_id: str
    client_token: str
    request_id: str | None
    user_data: str
    behavior: str
    image_id: str
    key_name: str | None
    placement_group: str | None = None
    capacity_reservation_id: str | None = None
    targets_reservation: bool = False
    launch_index: int = 0
    base: dict[str, Any] = field(default_factory=dict)
    cached_version: int = -1
    cached_xml: str = ""
    cached_view: dict[str, Any] = field(default_factory=dict)

    @property
    def instance_id(self) -> str:
        """EC2's id."""
        return self.machine.machine_id

    @property
    def region(self) -> str:
        """The region it is in."""
        return self.machine.order.region


class Instances:
    """All instances of all regions, oldest first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._by_id: dict[str, Instance] = {}

    def add(self, instance: Instance) -> None:
        """Adds an instance."""
        with self._lock:
            self._by_id[instance.instance_id] = instance

    def next_number(self) -> int:
        """Returns the next place in lists."""
        return next(self._numbers)

    def remove(self, instance_id: str) -> Instance | None:
        """Forgets an instance that lists no longer show."""
        with self._lock:
            return self._by_id.pop(instance_id, None)

    def find(self, instance_id: str) -> Instance | None:
        """Returns an instance of any region, hidden ones too; None when there is none."""
        with self._lock:
            return self._by_id.get(instance_id)

    def of_region(self, region: str, now: datetime) -> list[Instance]:
        """Returns the instances that lists show at ``now``, oldest first."""
        with self._lock:
            found = list(self._by_id.values())
        return [one for one in found if one.region == region and one.machine.visible_at <= now]

    def by_ids(self, region: str, ids: list[str], now: datetime | None) -> list[Instance]:
        """Returns the instances named, in the order asked; hidden ones too when ``now`` is None.

        Raises:
            Ec2Error: an id is malformed, or shows no instance.
        """
        found, missing = [], []
        for instance_id in ids:
            if not instance_id.startswith("i-"):
                raise malformed_instance(instance_id)
            one = self.find(instance_id)
            if one is None or one.region != region or (now is not None and one.machine.visible_at > now):
                missing.append(instance_id)
            else:
                found.append(one)
        if missing:
            raise unknown_instances(missing)
        return found

    def refresh(self, words: Iterator[str]) -> None:
        """Reads again from moto what a call may have changed: ``words`` are the values of its request."""
        for word in words:
            one = self.find(word) if word.startswith("i-") else None
            if one is not None:
                one.base = read_base(one)
                one.cached_version = -1


def tags_of(region: str, resource_id: str) -> dict[str, str]:
    """Returns a resource's tags as moto keeps them."""
    found: Mapping[str, str] = backend(region).tags.get(resource_id, {})
    return dict(found)


def read_base(one: Instance) -> dict[str, Any]:
    """Returns what moto knows of an instance and what changes only by calls: disks, cards, groups, options, tags."""
    moto = one.moto
    groups = {group.id: group.name for group in moto.security_groups}
    for card in moto.nics.values():
        groups.update({group.id: group.name for group in card.group_set})
    return {
        "InstanceType": moto.instance_type,
        "Architecture": moto.architecture or "x86_64",
        "RootDeviceName": moto.root_device_name,
        "RootDeviceType": "ebs",
        "VirtualizationType": "hvm",
        "Hypervisor": "xen",
        "EbsOptimized": bool(moto.ebs_optimized),
        "EnaSupport": True,
        "SourceDestCheck": bool(moto.source_dest_check),
        "SubnetId": moto.subnet_id,
        "VpcId": moto.vpc_id,
        "SecurityGroups": [{"GroupId": key, "GroupName": name} for key, name in groups.items()],
        "Tags": [{"Key": key, "Value": value} for key, value in tags_of(one.region, one.instance_id).items()] or None,
        "MetadataOptions": {
            "State": moto.metadata_options.state,
            "HttpTokens": moto.metadata_options.http_tokens,
            "HttpPutResponseHopLimit": moto.metadata_options.http_put_response_hop_limit,
            "HttpEndpoint": moto.metadata_options.http_endpoint,
        },
        "disks": [
            {
                "DeviceName": name,
                "Ebs": {
                    "VolumeId": disk.volume_id,
                    "Status": "attached",
                    "DeleteOnTermination": bool(disk.delete_on_termination),
                    "AttachTime": disk.attach_time,
                },
            }
            for name, disk in moto.get_block_device_mapping
        ],
        "cards": [_card(one, card) for card in moto.nics.values()],
        "profile": _profile(one),
    }


def _profile(one: Instance) -> dict[str, str] | None:
    association = backend(one.region).iam_instance_profile_associations.get(one.instance_id)
    if association is None:
        return None
    profile = association.iam_instance_profile
    return {"Arn": profile.arn, "Id": profile.id}


def _card(one: Instance, card: Any) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": card.id,
        "SubnetId": card.subnet.id,
        "VpcId": card.subnet.vpc_id,
        "MacAddress": card.mac_address,
        "Status": "in-use",
        "OwnerId": ACCOUNT,
        "SourceDestCheck": True,
        "InterfaceType": "interface",
        "PrivateIpAddress": one.machine.address if card.device_index == 0 else card.private_ip_address,
        "Groups": [{"GroupId": group.id, "GroupName": group.name} for group in card.group_set],
        "Attachment": {
            "AttachmentId": card.attachment_id,
            "DeviceIndex": card.device_index,
            "Status": "attached",
            "DeleteOnTermination": bool(card.delete_on_termination),
            "AttachTime": card.attach_time,
        },
    }


def view(one: Instance) -> dict[str, Any]:
    """Returns the instance as DescribeInstances shows it; kept until the machine or its resources change."""
    if one.cached_version != one.machine.version:
        version = one.machine.version
        one.cached_view = _view(one)
        shape = wire.operation("DescribeInstances").output_shape.members["Reservations"].member.members["Instances"].member
        one.cached_xml = wire.members_xml(shape, one.cached_view)
        one.cached_version = version
    return one.cached_view


def _view(one: Instance) -> dict[str, Any]:
    base = dict(one.base)
    disks, cards, profile = base.pop("disks"), base.pop("cards"), base.pop("profile")
    machine = one.machine
    state, zone = machine.state, machine.order.zone
    shown: dict[str, Any] = {
        "InstanceId": one.instance_id,
        "ImageId": one.image_id,
        "AmiLaunchIndex": one.launch_index,
        "LaunchTime": machine.launched_at,
        "KeyName": one.key_name,
        "ClientToken": one.client_token,
        "State": {"Code": STATE_CODES[state], "Name": state.value},
        "Placement": {"AvailabilityZone": zone, "GroupName": one.placement_group or "", "Tenancy": "default"},
        "Monitoring": {"State": "disabled"},
        "StateTransitionReason": _transition(machine),
        **base,
    }
    if machine.changed_by is not None and state in _DOWN:
        code, text = _REASONS[machine.changed_by]
        shown["StateReason"] = {"Code": code, "Message": text}
    if machine.order.capacity_type == "spot":
        shown |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": one.request_id}
    if one.capacity_reservation_id:
        shown["CapacityReservationId"] = one.capacity_reservation_id
        if one.targets_reservation:
            target = {"CapacityReservationId": one.capacity_reservation_id}
            shown["CapacityReservationSpecification"] = {"CapacityReservationTarget": target}
    if state is MachineState.TERMINATED:
        # Gone are its addresses, cards, disks and place in the network. Source: EC2 user guide, "Terminate instances".
        for name in ("SubnetId", "VpcId"):
            shown[name] = None
        shown["SecurityGroups"] = []
        return shown
    address = machine.address
    shown |= {"BlockDeviceMappings": disks, "NetworkInterfaces": cards, "IamInstanceProfile": profile}
    if address:
        shown |= {"PrivateIpAddress": address, "PrivateDnsName": f"ip-{address.replace('.', '-')}.ec2.internal"}
        if state in {MachineState.PENDING, MachineState.RUNNING} and wants_public(one):
            shown |= {"PublicIpAddress": address, "PublicDnsName": f"ec2-{address.replace('.', '-')}.compute.amazonaws.com"}
    return shown


def wants_public(one: Instance) -> bool:
    """True if the instance has a public address, by its launch or by its subnet."""
    return any(card.public_ip for card in one.moto.nics.values())


def _transition(machine: Machine) -> str:
    """Returns StateTransitionReason. A call's has the time; source: EC2 user guide, "Troubleshoot instance termination"."""
    if machine.state not in _DOWN or machine.changed_by is None:
        return ""
    at = machine.ended_at if machine.ended_at and machine.state is not MachineState.STOPPED else machine.state_since_at
    if machine.changed_by in _TIMED:
        return f"User initiated ({at:%Y-%m-%d %H:%M:%S} GMT)"
    return _REASONS[machine.changed_by][0]


def check_page(page_size: int | None, *, has_ids: bool, lowest: int = 5) -> None:
    """Refuses page sizes that EC2 refuses. Source: EC2 API reference, DescribeInstances, MaxResults."""
    if page_size is None:
        return
    if has_ids:
        raise Ec2Error(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    if not lowest <= page_size <= 1000:  # noqa: PLR2004 - the limit of the reference
        text = f"Value ( {page_size} ) for parameter maxResults is invalid. Expecting a value between {lowest} and 1000."
        raise Ec2Error("InvalidParameterValue", text)
