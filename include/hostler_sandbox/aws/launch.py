"""EC2 RunInstances: the request's parameters to an order, with EC2's refusals before any effect."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.order import LaunchOrder
from hostler_sandbox.state.stock import facts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Where a launch lands: found by the front from what moto holds."""

    subnet_id: str
    zone: str
    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Look-ups in the account (moto holds images, networks, profiles): each raises RefusedError for what does not exist.

    Attributes:
        image: AMI id -> ``bare`` or ``gpu``. network: (region, subnet id or None, zone or None, group ids) -> Network.
        profile: name or ARN -> (ARN, role name). has_kms_key: (region, key id) -> whether it can be used.
        has_reservation: reservation id -> (zone, instance type).
    """

    image: Callable[[str, str], str]
    network: Callable[[str, str | None, str | None, tuple[str, ...]], Network]
    profile: Callable[[str], tuple[str, str]]
    check_kms_key: Callable[[str, str], None]
    reservation: Callable[[str, str], tuple[str, str]]


def order_of(params: Mapping[str, Any], region: str, around: Surroundings) -> LaunchOrder:
    """Returns the order. Raises RefusedError as EC2 would, before any effect."""
    if not params.get("ImageId") and not params.get("LaunchTemplate"):
        raise RefusedError("MissingParameter", "The request must contain the parameter ImageId")
    if (params.get("MinCount"), params.get("MaxCount")) != (1, 1):
        raise RefusedError("InvalidParameterValue", "The sandbox launches one machine a call: MinCount and MaxCount are 1")
    facts = facts_of(params.get("InstanceType") or "m1.small")
    capacity_type, highest = _market(params)
    interface = (params.get("NetworkInterfaces") or [{}])[0]
    groups = tuple(params.get("SecurityGroupIds") or interface.get("Groups") or ())
    subnet = params.get("SubnetId") or interface.get("SubnetId")
    zone = (params.get("Placement") or {}).get("AvailabilityZone")
    reservation = _reservation(params)
    if reservation:
        zone, reserved_type = around.reservation(region, reservation)
        if reserved_type != facts.name:
            raise RefusedError("InvalidParameterValue", f"The capacity reservation '{reservation}' is for {reserved_type}")
        capacity_type = "reserved"
    network = around.network(region, subnet, zone, groups)
    profile = params.get("IamInstanceProfile") or {}
    named = profile.get("Arn") or profile.get("Name")
    arn, role = around.profile(named) if named else (None, None)
    disk = _root_disk(params)
    if disk.get("KmsKeyId"):
        around.check_kms_key(region, disk["KmsKeyId"])
    tags = _tags(params, "instance")
    return LaunchOrder(
        region=region,
        zone=network.zone,
        instance_type=facts.name,
        capacity_type=capacity_type,
        image_id=params["ImageId"],
        image=around.image(region, params["ImageId"]),
        subnet_id=network.subnet_id,
        group_ids=network.group_ids,
        token=params.get("ClientToken"),
        fingerprint=fingerprint_of(params),
        tags=tags,
        user_data=_user_data(params),
        max_spot_price=highest,
        profile_arn=arn,
        role=role,
        shutdown_behaviour=params.get("InstanceInitiatedShutdownBehavior") or "stop",
        is_protected=bool(params.get("DisableApiTermination")),
        is_encrypted=bool(disk.get("Encrypted")),
        kms_key_id=disk.get("KmsKeyId"),
        http_tokens=(params.get("MetadataOptions") or {}).get("HttpTokens", "optional"),
        disk_gib=int(disk.get("VolumeSize") or 100),
    )


def fingerprint_of(params: Mapping[str, Any]) -> str:
    """Returns a hash of everything that a client token binds: all parameters but the token itself."""
    bound = {key: value for key, value in params.items() if key not in {"ClientToken", "DryRun"}}
    return hashlib.sha256(json.dumps(bound, sort_keys=True, default=str).encode()).hexdigest()


def _market(params: Mapping[str, Any]) -> tuple[str, Decimal | None]:
    """Returns (capacity type, highest spot price)."""
    options = params.get("InstanceMarketOptions") or {}
    kind = options.get("MarketType")
    if kind is None:
        return "on-demand", None
    if kind == "capacity-block":
        return "reserved", None
    spot = options.get("SpotOptions") or {}
    behaviour = spot.get("InstanceInterruptionBehavior", "terminate")
    if spot.get("SpotInstanceType", "one-time") == "one-time" and behaviour != "terminate":
        raise RefusedError("InvalidParameterCombination", f"The interruption behavior {behaviour} needs a persistent request.")
    return "spot", Decimal(spot["MaxPrice"]) if spot.get("MaxPrice") else None


def _reservation(params: Mapping[str, Any]) -> str | None:
    target = (params.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    found: str | None = target.get("CapacityReservationId")
    return found


def _root_disk(params: Mapping[str, Any]) -> dict[str, Any]:
    for mapping in params.get("BlockDeviceMappings") or ():
        if mapping.get("Ebs"):
            disk: dict[str, Any] = mapping["Ebs"]
            return disk
    return {}


def _tags(params: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Returns the tags of one resource type. Raises RefusedError for EC2's limits (50 tags, no ``aws:`` keys)."""
    tags: dict[str, str] = {}
    for part in params.get("TagSpecifications") or ():
        if part.get("ResourceType") == kind:
            tags.update({item["Key"]: item.get("Value", "") for item in part.get("Tags") or ()})
    if len(tags) > 50:  # noqa: PLR2004  # EC2's documented limit
        raise RefusedError("TagLimitExceeded", "You have reached the maximum number of tags for this resource: 50")
    if any(key.startswith("aws:") for key in tags):
        raise RefusedError("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
    return tags


def _user_data(params: Mapping[str, Any]) -> str:
    """Returns the decoded user data. Raises RefusedError above EC2's 16 KB, or when it is not base64."""
    text = params.get("UserData") or ""
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise RefusedError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from error
    if len(decoded) > 16384:  # noqa: PLR2004  # EC2's documented limit
        raise RefusedError("InvalidParameterValue", "User data is limited to 16384 bytes")
    return decoded.decode("utf-8", "replace")
