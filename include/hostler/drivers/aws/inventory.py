"""What an AWS account holds in a region, and the removal of what is attached to nothing."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from hostler.catalog.storage import address_usd_per_month, volume_usd_per_month
from hostler.cloud.errors import NodeNotFoundError, NodeNotOursError, TeardownRefusedError
from hostler.cloud.inventory import Thing, ThingKind
from hostler.cloud.tags import NAME, is_foreign
from hostler.drivers.aws import convert
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.classify import drawn

_VOLUME_PAGE: Final = 500
"""Source: EC2 API reference, DescribeVolumes, MaxResults."""

_NOT_GONE: Final = ("pending", "running", "shutting-down", "stopping", "stopped")


class Inventory:
    """Implements ``SupportsInventory`` for one deployment."""

    def __init__(self, calls: Calls, deployment: str) -> None:
        self._calls = calls
        self._deployment = deployment

    def list(self, region: str) -> tuple[Thing, ...]:
        """See ``SupportsInventory.list_inventory``."""
        with drawn("list_inventory", "read"):
            filters = [{"Name": "instance-state-name", "Values": list(_NOT_GONE)}]
            found = self._calls.pages(region, "describe_instances", "Reservations", Filters=filters)
            machines = [_machine(one, region) for reservation in found for one in reservation.get("Instances", ())]
            volumes = [_volume(one, region) for one in self._volumes(region)]
            addresses = [_address(one, region) for one in self._addresses(region)]
        return (*machines, *volumes, *addresses)

    def remove(self, region: str, kind: ThingKind, thing_id: str) -> None:
        """See ``SupportsInventory.remove_unattached``."""
        if kind is ThingKind.MACHINE:
            raise TeardownRefusedError(f"{thing_id} is a machine: terminate ends it")
        seen = self._seen(region, kind, thing_id)
        if seen is None:
            raise NodeNotFoundError(f"EC2 knows no {kind} {thing_id} in {region}")
        if is_foreign(seen.tags, self._deployment):
            raise NodeNotOursError(f"{kind} {thing_id} in {region} is not deployment {self._deployment}'s alone")
        if seen.attached_to is not None:
            raise TeardownRefusedError(f"{kind} {thing_id} in {region} is attached to {seen.attached_to}")
        if kind is ThingKind.VOLUME:
            self._calls.call(region, "delete_volume", effect="delete", VolumeId=thing_id)
        else:
            self._calls.call(region, "release_address", effect="delete", AllocationId=thing_id)

    def _seen(self, region: str, kind: ThingKind, thing_id: str) -> Thing | None:
        with drawn("looking before removing", "read"):
            if kind is ThingKind.VOLUME:
                found = [_volume(one, region) for one in self._volumes(region, [{"Name": "volume-id", "Values": [thing_id]}])]
            else:
                named = [{"Name": "allocation-id", "Values": [thing_id]}]
                found = [_address(one, region) for one in self._addresses(region, named)]
        return next((one for one in found if one.thing_id == thing_id), None)

    # Asked by filter, never by id: an id that is gone is an empty list then, not an error with a code of its own.
    def _volumes(self, region: str, filters: Any = ()) -> Any:
        return self._calls.pages(region, "describe_volumes", "Volumes", page_size=_VOLUME_PAGE, Filters=list(filters))

    def _addresses(self, region: str, filters: Any = ()) -> Any:
        return self._calls.call(region, "describe_addresses", Filters=list(filters)).get("Addresses", ())


def _machine(instance: Mapping[str, Any], region: str) -> Thing:
    seen = convert.machine(instance, region, "private")
    return Thing(
        cloud=convert.CLOUD,
        region=region,
        zone=seen.zone,
        kind=ThingKind.MACHINE,
        thing_id=seen.provider_id,
        tags=seen.tags,
        state=seen.state,
        name=seen.name,
        words=f"{seen.instance_type} {seen.capacity_type}",
        made_at=seen.launched_at,
    )


def _volume(volume: Mapping[str, Any], region: str) -> Thing:
    tags, kind, size_gib = convert.tags_of(volume), str(volume.get("VolumeType", "")), int(volume["Size"])
    attached = [one.get("InstanceId") for one in volume.get("Attachments", ()) if one.get("InstanceId")]
    made_at = volume.get("CreateTime")
    usd = volume_usd_per_month(
        convert.CLOUD, region, kind, size_gib=size_gib, iops=volume.get("Iops"), mibps=volume.get("Throughput")
    )
    return Thing(
        cloud=convert.CLOUD,
        region=region,
        zone=str(volume.get("AvailabilityZone", "")),
        kind=ThingKind.VOLUME,
        thing_id=volume["VolumeId"],
        tags=tags,
        attached_to=str(attached[0]) if attached else None,
        name=tags.get(NAME, ""),
        words=f"{size_gib} GiB {kind}",
        size_gib=size_gib,
        usd_per_month=usd,
        made_at=made_at.astimezone(UTC) if made_at else None,
    )


def _address(address: Mapping[str, Any], region: str) -> Thing:
    tags = convert.tags_of(address)
    holder = address.get("InstanceId") or address.get("NetworkInterfaceId") or address.get("AssociationId")
    return Thing(
        cloud=convert.CLOUD,
        region=region,
        zone="",
        kind=ThingKind.ADDRESS,
        thing_id=str(address.get("AllocationId") or address["PublicIp"]),
        tags=tags,
        attached_to=str(holder) if holder else None,
        name=tags.get(NAME, ""),
        words=str(address.get("PublicIp", "")),
        usd_per_month=address_usd_per_month(convert.CLOUD, region),
    )
