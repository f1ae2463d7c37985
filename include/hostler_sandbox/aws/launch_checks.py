"""What a RunInstances request says, and whether what it names exists. All before stock is asked, as EC2 does."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from moto.kms.models import kms_backends

from hostler_sandbox.aws import moto_server, refusals
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.moto_server import ACCOUNT, backend

USER_DATA_LIMIT: Final = 16384
"""Bytes, decoded. Source: EC2 user guide, "Run commands when you launch an instance"."""

TOKEN_LIMIT: Final = 64
"""Letters of a client token. Source: EC2 API reference, "Ensuring idempotency"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A launch as asked for.

    Attributes:
        zone: named in the placement or by a subnet; "" for any. is_zonal: one of both was named: the token counts per zone.
        capacity_type: ``on-demand``, ``spot`` or ``reserved`` (a capacity block). takes_open: an open reservation may serve it.
        kept_cards, kept_disks: those that the request keeps beyond the instance.
    """

    least: int
    most: int
    token: str
    image_id: str
    instance_type: str
    zone: str
    is_zonal: bool
    subnet_id: str | None
    group_ids: tuple[str, ...]
    key_name: str | None
    capacity_type: str
    max_price: Decimal | None
    reservation_id: str | None
    takes_open: bool
    placement_group: str | None
    user_data: str
    behavior: str
    profile: str | None
    kms_keys: tuple[str, ...]
    card_tags: Mapping[str, str]
    request_tags: Mapping[str, str]
    kept_cards: frozenset[int]
    kept_disks: frozenset[str]


def read_order(call: Call) -> Wanted:
    """Reads the request. Raises Ec2Error for one that makes no sense."""
    params = call.params
    if "LaunchTemplate" in params:
        raise refusals.not_served("RunInstances with a launch template")
    for name in ("ImageId", "MinCount", "MaxCount"):
        if name not in params:
            raise Ec2Error("MissingParameter", f"The request must contain the parameter {name}")
    least, most = params["MinCount"], params["MaxCount"]
    if not 1 <= least <= most:
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{least}' for MinCount or '{most}' for MaxCount.")
    token = params.get("ClientToken", "")
    if len(token) > TOKEN_LIMIT:
        raise Ec2Error("InvalidParameterValue", f"Client token is longer than {TOKEN_LIMIT} ASCII characters.")
    market = params.get("InstanceMarketOptions", {})
    spot = market.get("SpotOptions", {})
    cards = params.get("NetworkInterfaces", [])
    subnet_id = params.get("SubnetId") or next((card["SubnetId"] for card in cards if "SubnetId" in card), None)
    groups = [*params.get("SecurityGroupIds", []), *(group for card in cards for group in card.get("Groups", []))]
    disks = params.get("BlockDeviceMappings", [])
    reserved = params.get("CapacityReservationSpecification", {})
    zone = _zone(call, subnet_id)
    tags = _tags(params)
    return Wanted(
        least=least,
        most=most,
        token=token,
        image_id=params["ImageId"],
        instance_type=params.get("InstanceType", "m1.small"),
        zone=zone,
        is_zonal=bool(zone),
        subnet_id=subnet_id,
        group_ids=tuple(groups),
        key_name=params.get("KeyName"),
        capacity_type=_capacity_type(market),
        max_price=_price(spot.get("MaxPrice")),
        reservation_id=reserved.get("CapacityReservationTarget", {}).get("CapacityReservationId"),
        takes_open=reserved.get("CapacityReservationPreference", "open") == "open",
        placement_group=params.get("Placement", {}).get("GroupName"),
        user_data=_user_data(params.get("UserData", "")),
        behavior=params.get("InstanceInitiatedShutdownBehavior", "stop"),
        profile=_profile(params),
        kms_keys=tuple(disk["Ebs"]["KmsKeyId"] for disk in disks if disk.get("Ebs", {}).get("KmsKeyId")),
        card_tags=tags.get("network-interface", {}),
        request_tags=tags.get("spot-instances-request", {}),
        kept_cards=frozenset(card.get("DeviceIndex", 0) for card in cards if card.get("DeleteOnTermination") is False),
        kept_disks=frozenset(
            disk.get("DeviceName", "") for disk in disks if disk.get("Ebs", {}).get("DeleteOnTermination") is False
        ),
    )


def _zone(call: Call, subnet_id: str | None) -> str:
    named = call.zone or ""
    if named and named not in moto_server.zone_names(call.region):
        raise Ec2Error("InvalidParameterValue", f"Invalid availability zone: [{named}]")
    if subnet_id is None:
        return named
    subnet = next((zone[subnet_id] for zone in backend(call.region).subnets.values() if subnet_id in zone), None)
    if subnet is None:
        raise Ec2Error("InvalidSubnetID.NotFound", f"The subnet ID '{subnet_id}' does not exist")
    if named and named != subnet.availability_zone:
        text = f"The availability zone '{named}' does not match that of subnet '{subnet_id}'."
        raise Ec2Error("InvalidParameterCombination", text)
    return str(subnet.availability_zone)


def _capacity_type(market: Mapping[str, Any]) -> str:
    kind = market.get("MarketType")
    spot = market.get("SpotOptions", {})
    if kind == "spot":
        if spot.get("SpotInstanceType", "one-time") != "one-time":
            raise refusals.not_served("RunInstances with a persistent spot request")
        if spot.get("InstanceInterruptionBehavior", "terminate") != "terminate":
            text = f"The interruption behavior {spot['InstanceInterruptionBehavior']} is not supported for one-time requests."
            raise Ec2Error("InvalidParameterCombination", text)
        return "spot"
    return "reserved" if kind == "capacity-block" else "on-demand"


def _price(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal(-1)
    if not (price.is_finite() and price > 0):
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{text}' for MaxPrice.")
    return price


def _user_data(text: str) -> str:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise Ec2Error("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if len(raw) > USER_DATA_LIMIT:
        raise Ec2Error("InvalidParameterValue", f"User data is limited to {USER_DATA_LIMIT} bytes")
    return raw.decode("utf-8", "replace")


def _profile(params: Mapping[str, Any]) -> str | None:
    found = params.get("IamInstanceProfile", {})
    if "Arn" in found:
        return str(found["Arn"]).rsplit("/", 1)[-1]
    name: str | None = found.get("Name")
    return name


def _tags(params: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {
        one.get("ResourceType", ""): {tag["Key"]: tag.get("Value", "") for tag in one.get("Tags", [])}
        for one in params.get("TagSpecifications", [])
    }


def check_resources(call: Call, wanted: Wanted) -> None:
    """Refuses what the request names and EC2 does not have. Codes: "Error codes for the Amazon EC2 API"."""
    ec2 = backend(call.region)
    if wanted.image_id not in ec2.amis:
        raise Ec2Error("InvalidAMIID.NotFound", f"The image id '[{wanted.image_id}]' does not exist")
    for group_id in wanted.group_ids:
        if ec2.get_security_group_from_id(group_id) is None:
            raise Ec2Error("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
    if wanted.key_name and wanted.key_name not in ec2.key_pairs:
        raise Ec2Error("InvalidKeyPair.NotFound", f"The key pair '{wanted.key_name}' does not exist")
    if wanted.profile:
        _check_profile(wanted.profile)
    zones = moto_server.zones_of(call.region, wanted.instance_type)
    if moto_server.type_facts(wanted.instance_type) is None or not zones:
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{wanted.instance_type}' for InstanceType.")
    if wanted.zone and wanted.zone not in zones:
        raise refusals.not_offered(wanted.instance_type, wanted.zone, zones)


def _check_profile(name: str) -> None:
    from moto.iam.models import iam_backends

    profiles = iam_backends[ACCOUNT]["aws"].instance_profiles.values()
    if name not in {profile.name for profile in profiles}:
        text = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
        raise Ec2Error("InvalidParameterValue", text)


def key_is_usable(region: str, key_ids: Iterable[str]) -> bool:
    """True if every key exists and is enabled. EC2 takes the launch all the same and ends the instance: source, EC2 user guide,
    "Instance terminates immediately" (Client.InternalError: the KMS key can't be used).
    """
    kms = kms_backends[ACCOUNT][region]
    for key_id in key_ids:
        found = kms.any_id_to_key_id(key_id)
        key = kms.keys.get(found)
        if key is None or not key.enabled:
            return False
    return True
