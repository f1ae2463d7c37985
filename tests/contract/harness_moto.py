from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from tests.clouds import aws
from tests.clouds.front import Fault
from tests.contract.harness import PAGE_SIZE, Call, Power

from hostler.cloud.driver import LaunchOrder, OfferingQuery
from hostler.model.enums import CapacityType

_NUMBERS = count(1)

ACTIONS: Final[dict[str, str]] = {
    "launch": "RunInstances",
    "get": "DescribeInstances",
    "list": "DescribeInstances",
    "foreign": "DescribeInstances",
    "interruptions": "DescribeInstances",
    "terminate": "TerminateInstances",
    "offerings": "DescribeInstanceTypeOfferings",
}
"""The one action of each call that faults strike."""


class MotoUnderTest:
    """The AWS driver on plain moto: what moto cannot play is left to the sandbox, which can."""

    region = aws.REGION
    zones = aws.ZONES
    powers: frozenset[Power] = frozenset()

    def __init__(self, moto: aws.Moto) -> None:
        self._front = moto.front
        self._ec2: Any = aws.owner()
        # One account for all tests, in which ended machines stay listed: each test is a deployment of its own.
        self.deployment = f"test-{next(_NUMBERS)}"
        self.driver = aws.driver(aws.image_of(self._ec2), deployment=self.deployment, page_size=PAGE_SIZE)
        # Look-ups first, so that what a test counts and breaks is the call it means.
        self._front.clear()

    def query(self) -> OfferingQuery:
        return OfferingQuery(
            accelerator="L4", accelerators_per_node=1, capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND)
        )

    def order(
        self,
        *,
        slot: int = 0,
        attempt: int = 1,
        lease: str = "lease0",
        zone: str | None = None,
        kind: CapacityType = CapacityType.SPOT,
    ) -> LaunchOrder:
        where = {"zone": zone or self.zones[0], "capacity_type": kind}
        return aws.order(deployment=self.deployment, slot=slot, attempt=attempt, lease=lease, **where)

    def live_ids(self) -> frozenset[str]:
        alive = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopped"]}]
        pages = self._ec2.describe_instances(Filters=alive)["Reservations"]
        return frozenset(item["InstanceId"] for page in pages for item in page["Instances"])

    def put_foreign(self, tags: Mapping[str, str]) -> str:
        labels = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = self._ec2.run_instances(
            ImageId=aws.image_of(self._ec2),
            InstanceType="g6.xlarge",
            MinCount=1,
            MaxCount=1,
            **({"TagSpecifications": [{"ResourceType": "instance", "Tags": labels}]} if labels else {}),
        )
        return str(made["Instances"][0]["InstanceId"])

    def settle(self) -> None:
        """Moto ends machines at once."""

    def calls(self, call: Call) -> int:
        return self._front.counts[ACTIONS[call]]

    def throttle(self, call: Call) -> None:
        fault = Fault(kind="refuse", code="RequestLimitExceeded", text="Request limit exceeded.", status=503, retry_after="3")
        self._front.order(ACTIONS[call], fault)

    def break_down(self, call: Call) -> None:
        self._front.order(ACTIONS[call], Fault(kind="refuse", code="InternalError", text="An internal error", status=500))

    def deny(self, *calls: Call) -> None:
        text = "You are not authorized to perform this operation."
        for call in calls:
            self._front.always[ACTIONS[call]] = Fault(kind="refuse", code="UnauthorizedOperation", text=text, status=403)

    def lose_answer(self) -> None:
        self._front.order("RunInstances", Fault(kind="lose"))

    def empty(self, zone: str) -> None:
        raise NotImplementedError("moto has no stock")

    def limit(self, machines: int) -> None:
        raise NotImplementedError("moto has no quotas")

    def lag(self) -> None:
        raise NotImplementedError("moto's lists do not lag")

    def take(self, provider_id: str) -> None:
        raise NotImplementedError("moto takes no machine")
