from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from tests.clouds import aws
from tests.clouds.sandbox import SandboxProcess
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

OPTIONS: Final = ("--clock-scale", "0.001", "--list-lag-s", "5", "--listed-s", "86400")
"""Lists always lag; only ``settle`` moves the clock, so nothing happens by chance."""


class SandboxUnderTest:
    """The AWS driver on the sandbox, with all that fleet.yaml can name."""

    region = aws.REGION
    zones = aws.ZONES
    retry_after_s = None
    powers: frozenset[Power] = frozenset({"tokens", "stock", "quota", "lag", "zones", "take"})

    def __init__(self, sandbox: SandboxProcess) -> None:
        self._sandbox = sandbox
        made = sandbox.info["fixtures"]
        self._ec2: Any = aws.owner()
        self._image = aws.image_of(self._ec2)
        self.deployment = f"test-{next(_NUMBERS)}"
        self.driver = aws.driver(
            self._image,
            deployment=self.deployment,
            page_size=PAGE_SIZE,
            instance_profile=made["instance_profile"],
            security_groups={"tags": made["security_group_tags"]},
            kms_key=made["kms_alias"],
        )
        # Entries are numbered from 1.
        self._began = len(sandbox.get("journal")["entries"])

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
        alive = {"pending", "running", "stopping", "stopped"}
        return frozenset(machine for machine, state in self._sandbox.states().items() if state in alive)

    def put_foreign(self, tags: Mapping[str, str]) -> str:
        labels = [{"Key": key, "Value": value} for key, value in tags.items()]
        made = self._ec2.run_instances(
            ImageId=self._image,
            InstanceType="g6.xlarge",
            MinCount=1,
            MaxCount=1,
            **({"TagSpecifications": [{"ResourceType": "instance", "Tags": labels}]} if labels else {}),
        )
        return str(made["Instances"][0]["InstanceId"])

    def settle(self) -> None:
        self._sandbox.settle()

    def calls(self, call: Call) -> int:
        entries = self._sandbox.get("journal", after=str(self._began), kind="wire", action=ACTIONS[call])["entries"]
        return len(entries)

    def throttle(self, call: Call) -> None:
        self._sandbox.post("fault", kind="throttle", service="ec2", action=ACTIONS[call])

    def break_down(self, call: Call) -> None:
        self._sandbox.post("fault", kind="error", service="ec2", action=ACTIONS[call], code="InternalError", status=500)

    def deny(self, *calls: Call) -> None:
        for action in {ACTIONS[call] for call in calls}:
            self._sandbox.post("fault", kind="unauthorized", service="ec2", action=action, count=None)

    def lose_answer(self) -> None:
        self._sandbox.post("fault", kind="answer_lost", service="ec2", action="RunInstances", mode="cut")

    def empty(self, zone: str) -> None:
        self._sandbox.post("stock", zone=zone, instance_type="g6.xlarge", count=0)

    def limit(self, machines: int) -> None:
        vcpus = machines * self.order().offering.vcpu_count
        self._sandbox.post("quota", region=self.region, instance_type="g6.xlarge", capacity_type="on-demand", vcpus=vcpus)

    def lag(self) -> None:
        """They always do here."""

    def take(self, provider_id: str) -> None:
        self._sandbox.post("interrupt", machine_id=provider_id, notice_s=30)
