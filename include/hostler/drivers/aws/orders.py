"""The RunInstances request of one order. Pure: the same order and site always give the same request, as its token demands."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from hostler.cloud.driver import LaunchOrder
from hostler.cloud.errors import CloudConfigError
from hostler.cloud.tags import DEPLOYMENT
from hostler.drivers.aws.convert import tag_list
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType

USER_DATA_LIMIT: Final = 16384
"""Bytes before encoding. Source: EC2 user guide, "Run commands at launch"."""

TOKEN_LENGTH: Final = 40
"""Of 64 that EC2 takes. Source: EC2 API reference, "Ensuring idempotency"."""

METADATA_HOP_LIMIT: Final = 2
"""One hop more than the default: a container behind a bridge is one hop further from the metadata service than the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A capacity reservation of ours. ``is_block``: a capacity block, paid in advance and with an end."""

    reservation_id: str
    zone: str
    instance_type: str
    available_count: int
    is_block: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What was looked up for an order.

    Attributes:
        root_device: name of the image's root device; it differs between images, and only under it is the disk ours to shape.
        group_ids: empty means the VPC's default group. reservation: for capacity type ``reserved`` only.
    """

    image_id: str
    root_device: str
    subnet_id: str
    group_ids: tuple[str, ...] = ()
    reservation: Reservation | None = None


def run_request(order: LaunchOrder, site: Site, settings: AwsSettings) -> dict[str, Any]:
    """Returns the arguments of RunInstances for exactly one machine.

    Raises:
        CloudConfigError: the order cannot be put to EC2; nothing was sent.
    """
    size = len(order.user_data.encode())
    if size > USER_DATA_LIMIT:
        raise CloudConfigError(f"user data of {order.name} has {size} bytes; EC2 takes {USER_DATA_LIMIT} at most")
    request: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": client_token(order),
        "ImageId": site.image_id,
        "InstanceType": order.offering.instance_type,
        "Placement": {"AvailabilityZone": order.offering.zone},
        "NetworkInterfaces": [_network_interface(site, settings)],
        "BlockDeviceMappings": [_root_volume(site, settings)],
        "TagSpecifications": _tags(order, settings),
        # The SDK encodes it.
        "UserData": order.user_data,
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": METADATA_HOP_LIMIT,
        },
        # The dead man's switch: the agent powers the machine off, and that ends it; a one-time spot request ends with it.
        "InstanceInitiatedShutdownBehavior": "terminate",
        **_market(order, site),
    }
    if settings.instance_profile:
        field = "Arn" if settings.instance_profile.startswith("arn:") else "Name"
        request["IamInstanceProfile"] = {field: settings.instance_profile}
    return request


def client_token(order: LaunchOrder) -> str:
    """Returns the token as EC2 gets it: the order's, made this deployment's own.

    Tokens count per account: two deployments in one account that run the same Dag on the same schedule order with equal tokens.
    """
    return hashlib.sha256(f"{order.tags[DEPLOYMENT]}\0{order.client_token}".encode()).hexdigest()[:TOKEN_LENGTH]


def _network_interface(site: Site, settings: AwsSettings) -> dict[str, Any]:
    """Returns the one network interface. Nodes reached by a public address must get one; else the subnet decides."""
    card: dict[str, Any] = {"DeviceIndex": 0, "SubnetId": site.subnet_id, "DeleteOnTermination": True}
    if settings.reach.address == "public":
        card["AssociatePublicIpAddress"] = True
    if site.group_ids:
        card["Groups"] = list(site.group_ids)
    return card


def _root_volume(site: Site, settings: AwsSettings) -> dict[str, Any]:
    """Returns the root disk: always encrypted, and gone with the machine."""
    disk: dict[str, Any] = {
        "VolumeSize": settings.root_volume_gib,
        "VolumeType": "gp3",
        "Encrypted": True,
        "DeleteOnTermination": True,
    }
    if settings.kms_key:
        disk["KmsKeyId"] = settings.kms_key
    return {"DeviceName": site.root_device, "Ebs": disk}


def _tags(order: LaunchOrder, settings: AwsSettings) -> list[dict[str, Any]]:
    """Returns the tags of the machine and of all that comes with it; the order's win over the cloud's own of fleet.yaml."""
    kinds = ["instance", "volume", "network-interface"]
    if order.offering.capacity_type is CapacityType.SPOT:
        kinds.append("spot-instances-request")
    tags = tag_list({**settings.tags, **order.tags})
    return [{"ResourceType": kind, "Tags": tags} for kind in kinds]


def _market(order: LaunchOrder, site: Site) -> dict[str, Any]:
    """Returns how the machine is bought.

    Spot has no MaxPrice: without one EC2 never takes more than the on-demand price and interrupts less often.
    """
    if order.offering.capacity_type is CapacityType.SPOT:
        options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        return {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options}}
    if order.offering.capacity_type is CapacityType.ON_DEMAND:
        return {}
    if site.reservation is None:
        raise CloudConfigError(f"{order.offering.key}: no capacity reservation of clouds.aws.reservations fits")
    target = {"CapacityReservationTarget": {"CapacityReservationId": site.reservation.reservation_id}}
    block = {"InstanceMarketOptions": {"MarketType": "capacity-block"}} if site.reservation.is_block else {}
    return {"CapacityReservationSpecification": target, **block}
