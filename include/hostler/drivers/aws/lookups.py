"""What an order needs to know of the account: image, subnet, security groups, reservations. Looked up, kept for a while."""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeVar

from hostler.cloud.driver import LaunchOrder
from hostler.cloud.errors import CloudConfigError
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.convert import tag_filters
from hostler.drivers.aws.orders import Reservation, Site
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType

KEPT_S: Final = 900.0
"""Age at which an answer is asked for again: long enough for a gang of hundreds, short enough for an edited network."""

RESERVATIONS_KEPT_S: Final = 20.0
"""Reservations fill up while a gang launches."""

_SSM: Final = "ssm:"

_Answer = TypeVar("_Answer")


class Lookups:
    """Answers about the account, kept by age. Failures are never kept. Thread-safe.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, calls: Calls, settings: AwsSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._settings = settings
        self._clock = clock
        self._kept: dict[Hashable, tuple[float, object]] = {}
        self._lock = threading.Lock()

    def site(self, order: LaunchOrder) -> Site:
        """Returns all that the order needs.

        Raises:
            CloudConfigError: something named in fleet.yaml is not there; the text names it.
            CloudError: a look-up failed; nothing was made.
        """
        region, zone = order.offering.region, order.offering.zone
        image_id = self.image_id(region)
        subnet_id, vpc_id = self._subnet(region, zone, order.client_token)
        return Site(
            image_id=image_id,
            root_device=self._root_device(region, image_id),
            subnet_id=subnet_id,
            group_ids=self._groups(region, vpc_id),
            reservation=self._reservation(order) if order.offering.capacity_type is CapacityType.RESERVED else None,
        )

    def zones_with_subnet(self, region: str) -> frozenset[str]:
        """Returns the zones in which a machine would have a subnet."""
        return frozenset(zone for zone, _subnet_id, _vpc_id in self._subnets(region))

    def reservations(self, region: str) -> tuple[Reservation, ...]:
        """Returns the active ones of the reservations that fleet.yaml names, by id."""
        return self._keep(("reservations", region), RESERVATIONS_KEPT_S, lambda: self._find_reservations(region))

    def subnet_facts(self, region: str) -> tuple[Mapping[str, Any], ...]:
        """Returns the subnets that fleet.yaml selects as EC2 describes them, asked anew; empty when there are none."""
        found = self._calls.pages(region, "describe_subnets", "Subnets", Filters=self._subnet_filters())
        return tuple(sorted(found, key=lambda item: (item["AvailabilityZone"], item["SubnetId"])))

    def image_id(self, region: str) -> str:
        """Returns the image's id, asked from SSM when fleet.yaml names a parameter."""
        word = self._settings.image_for(region)
        if not word.startswith(_SSM):
            return word
        path = word.removeprefix(_SSM)
        return self._keep(("ssm", region, path), KEPT_S, lambda: self._find_parameter(region, path))

    def _find_parameter(self, region: str, path: str) -> str:
        answer = self._calls.call(region, "get_parameter", service="ssm", Name=path)
        return str(answer["Parameter"]["Value"])

    def _root_device(self, region: str, image_id: str) -> str:
        return self._keep(("image", region, image_id), KEPT_S, lambda: self._find_root_device(region, image_id))

    def _find_root_device(self, region: str, image_id: str) -> str:
        images = self._calls.call(region, "describe_images", ImageIds=[image_id]).get("Images", ())
        if not images or not images[0].get("RootDeviceName"):
            raise CloudConfigError(f"clouds.aws.image: {image_id} is not an image with a root device in {region}")
        return str(images[0]["RootDeviceName"])

    def _subnet(self, region: str, zone: str, client_token: str) -> tuple[str, str]:
        """Returns (subnet, VPC). Of several in the zone the token picks one: the same order always gets the same."""
        found = [(subnet_id, vpc_id) for where, subnet_id, vpc_id in self._subnets(region) if where == zone]
        if not found:
            raise CloudConfigError(f"clouds.aws.subnets: no subnet in zone {zone}")
        return found[sum(client_token.encode()) % len(found)]

    def _subnets(self, region: str) -> tuple[tuple[str, str, str], ...]:
        """Returns (zone, subnet, VPC) of the subnets that fleet.yaml selects, sorted."""
        return self._keep(("subnets", region), KEPT_S, lambda: self._find_subnets(region))

    def _find_subnets(self, region: str) -> tuple[tuple[str, str, str], ...]:
        return tuple((item["AvailabilityZone"], item["SubnetId"], item["VpcId"]) for item in self.subnet_facts(region))

    def _subnet_filters(self) -> list[dict[str, Any]]:
        selected = self._settings.subnets
        if selected is None:
            return [{"Name": "default-for-az", "Values": ["true"]}]
        # A filter, not SubnetIds: ids of other regions are then merely not found here.
        return [{"Name": "subnet-id", "Values": list(selected.ids)}] if selected.ids else tag_filters(selected.tags)

    def _groups(self, region: str, vpc_id: str) -> tuple[str, ...]:
        """Returns the security groups of the VPC that fleet.yaml selects; empty for the default group."""
        if self._settings.security_groups is None:
            return ()
        return self._keep(("groups", region, vpc_id), KEPT_S, lambda: self._find_groups(region, vpc_id))

    def _find_groups(self, region: str, vpc_id: str) -> tuple[str, ...]:
        found = self.group_facts(region, vpc_id)
        if not found:
            raise CloudConfigError(f"clouds.aws.security_groups: none of them is in {vpc_id} in {region}")
        return tuple(item["GroupId"] for item in found)

    def group_facts(self, region: str, vpc_id: str) -> tuple[Mapping[str, Any], ...]:
        """Returns the security groups that a machine in the VPC gets, as EC2 describes them, asked anew; by id."""
        selected = self._settings.security_groups
        if selected is None:
            chosen: list[dict[str, Any]] = [{"Name": "group-name", "Values": ["default"]}]
        elif selected.ids:
            chosen = [{"Name": "group-id", "Values": list(selected.ids)}]
        else:
            chosen = tag_filters(selected.tags)
        filters = [{"Name": "vpc-id", "Values": [vpc_id]}, *chosen]
        found = self._calls.pages(region, "describe_security_groups", "SecurityGroups", Filters=filters)
        return tuple(sorted(found, key=lambda item: str(item["GroupId"])))

    def _reservation(self, order: LaunchOrder) -> Reservation:
        """Returns the reservation that the order fits into, one with room first.

        Raises:
            CloudConfigError: none fits, or it is a capacity block that nobody approved.
        """
        offering = order.offering
        fitting = [
            item
            for item in self.reservations(offering.region)
            if (item.zone, item.instance_type) == (offering.zone, offering.instance_type)
        ]
        usable = [item for item in fitting if self._settings.approve_capacity_blocks or not item.is_block]
        if not usable:
            blocks = ", ".join(item.reservation_id for item in fitting)
            hint = f": {blocks} is a capacity block, and approve_capacity_blocks is false" if fitting else ""
            raise CloudConfigError(f"clouds.aws.reservations: none for {offering.instance_type} in {offering.zone}{hint}")
        # Full ones still fit: the same order again must go to the reservation that it filled itself.
        return min(usable, key=lambda item: (item.available_count < 1, item.reservation_id))

    def _find_reservations(self, region: str) -> tuple[Reservation, ...]:
        """Asks for all and picks ours: an id of another region would make the whole call fail."""
        wanted = set(self._settings.reservations)
        if not wanted:
            return ()
        active = [{"Name": "state", "Values": ["active"]}]
        found = self._calls.pages(region, "describe_capacity_reservations", "CapacityReservations", Filters=active)
        ours = [item for item in found if item["CapacityReservationId"] in wanted]
        return tuple(
            Reservation(
                reservation_id=item["CapacityReservationId"],
                zone=item["AvailabilityZone"],
                instance_type=item["InstanceType"],
                available_count=int(item.get("AvailableInstanceCount", 0)),
                is_block=item.get("ReservationType") == "capacity-block",
            )
            for item in sorted(ours, key=lambda item: str(item["CapacityReservationId"]))
        )

    def _keep(self, key: Hashable, kept_s: float, find: Callable[[], _Answer]) -> _Answer:
        """Returns a kept answer that is young enough, or asks. Two threads may ask at once; both answers are good."""
        now = self._clock()
        with self._lock:
            at, answer = self._kept.get(key, (now - kept_s, None))
        if now - at < kept_s:
            return answer  # type: ignore[return-value]  # one key always holds one kind of answer
        found = find()
        with self._lock:
            self._kept[key] = (now, found)
        return found
