"""Amazon's words into the port's words. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

from hostler.cloud.driver import Machine, MachineState
from hostler.cloud.tags import NAME
from hostler.model.enums import CapacityType

CLOUD: Final = "aws"

_STATES: Final = {
    "pending": MachineState.PENDING,
    "running": MachineState.RUNNING,
    "shutting-down": MachineState.TERMINATING,
    "terminated": MachineState.TERMINATED,
    "stopping": MachineState.STOPPING,
    "stopped": MachineState.STOPPED,
}
"""Source: EC2 API reference, InstanceState."""

_ENDED: Final = (MachineState.TERMINATED, MachineState.STOPPED)
"""Where billing of the machine has ended."""

_TRANSITION_AT: Final = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
"""StateTransitionReason ends with the time: ``User initiated (2026-12-01 12:00:00 GMT)``."""


def machine(instance: Mapping[str, Any], region: str, address: Literal["private", "public"]) -> Machine:
    """Returns an instance of DescribeInstances or RunInstances as the port's record.

    Args:
        address: which of the machine's addresses nodes are reached at.

    Raises:
        KeyError, ValueError: it has no id, type, zone or known state; nothing may be concluded from it.
    """
    tags = tags_of(instance)
    state = _STATES[instance["State"]["Name"]]
    reason = str(instance.get("StateReason", {}).get("Code", ""))
    return Machine(
        cloud=CLOUD,
        region=region,
        zone=instance["Placement"]["AvailabilityZone"],
        provider_id=instance["InstanceId"],
        name=tags.get(NAME, ""),
        instance_type=instance["InstanceType"],
        capacity_type=_capacity_type(instance),
        state=state,
        tags=tags,
        address=instance.get("PublicIpAddress" if address == "public" else "PrivateIpAddress") or None,
        launched_at=_utc(instance.get("LaunchTime")),
        ended_at=transition_at(instance) if state in _ENDED else None,
        client_token=instance.get("ClientToken") or None,
        resources=_resources(instance),
        state_reason=reason,
    )


def tags_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """Returns the tags of anything that EC2 describes."""
    return {tag["Key"]: tag.get("Value", "") for tag in thing.get("Tags", ())}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns tags as EC2 takes them, by key: the same tags are always the same bytes."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def tag_filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns filters that every tag must match, literally: ``*``, ``?`` and the backslash are wildcards to EC2."""
    return [{"Name": f"tag:{key}", "Values": [re.sub(r"([*?\\])", r"\\\1", tags[key])]} for key in sorted(tags)]


def transition_at(instance: Mapping[str, Any]) -> datetime | None:
    """Returns when the instance changed state, as the cloud tells it; None when it does not."""
    found = _TRANSITION_AT.search(str(instance.get("StateTransitionReason", "")))
    return datetime.strptime(found.group(1), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if found else None


def price(word: object) -> Decimal | None:
    """Returns a price as the cloud writes it; None for anything that is not a finite number above zero."""
    try:
        found = Decimal(str(word))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found > 0 else None


def _capacity_type(instance: Mapping[str, Any]) -> CapacityType:
    """Returns how it was bought. A machine that merely fell into an open reservation is on-demand: so was its order."""
    lifecycle = instance.get("InstanceLifecycle")
    if lifecycle == "spot":
        return CapacityType.SPOT
    targeted = instance.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget")
    return CapacityType.RESERVED if targeted or lifecycle == "capacity-block" else CapacityType.ON_DEMAND


def _resources(instance: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Returns the sub-resources. All are made to go with the machine; the reap looks for those that did not."""
    volumes = [("volume", mapping.get("Ebs", {}).get("VolumeId")) for mapping in instance.get("BlockDeviceMappings", ())]
    cards = [("network-interface", card.get("NetworkInterfaceId")) for card in instance.get("NetworkInterfaces", ())]
    request = [("spot-instances-request", instance.get("SpotInstanceRequestId"))]
    return tuple((kind, found) for kind, found in (*cards, *volumes, *request) if found)


def _utc(moment: datetime | None) -> datetime | None:
    """Returns the SDK's time in UTC."""
    return moment.astimezone(UTC) if moment else None
