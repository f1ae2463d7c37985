from itertools import count
from typing import Any

from tests.clouds import aws
from tests.clouds.sandbox import SandboxProcess
from tests.contract.harness import PAGE_SIZE, Call, Power
from tests.contract.harness_moto import ACTIONS, MotoUnderTest

_NUMBERS = count(1)
_VCPUS = 4
"""Of the order's g6.xlarge."""


class SandboxUnderTest(MotoUnderTest):
    """The AWS driver on the sandbox's EC2, which refuses, lags and takes as EC2 does."""

    powers: frozenset[Power] = frozenset({"tokens", "zones", "stock", "quota", "lag", "take"})

    def __init__(self, sandbox: SandboxProcess) -> None:
        self._sandbox = sandbox
        sandbox.post("reset")
        self._ec2: Any = aws.owner()
        self._image = sandbox.facts["fixtures"]["images"][f"{aws.REGION}/gpu"]
        self.deployment = f"sandboxed-{next(_NUMBERS)}"
        self.driver = aws.driver(self._image, deployment=self.deployment, page_size=PAGE_SIZE)
        self._start = sandbox.get("journal")["last_sequence"]

    def put_foreign(self, tags: Any) -> str:
        labels = [{"Key": key, "Value": value} for key, value in tags.items()]
        request: dict[str, Any] = {"ImageId": self._image, "InstanceType": "g6.xlarge", "MinCount": 1, "MaxCount": 1}
        if labels:
            request["TagSpecifications"] = [{"ResourceType": "instance", "Tags": labels}]
        return str(self._ec2.run_instances(**request)["Instances"][0]["InstanceId"])

    def settle(self) -> None:
        self._sandbox.settle(60)

    def calls(self, call: Call) -> int:
        found = self._sandbox.get(f"journal?after={self._start}&kind=wire&action={ACTIONS[call]}")["entries"]
        # The owner's own looks do not count: the driver says who it is.
        return sum("hostler" in entry["user_agent"] for entry in found)

    def throttle(self, call: Call) -> None:
        self._sandbox.post("fault", kind="throttle", action=ACTIONS[call], retry_after_s=3)

    def break_down(self, call: Call) -> None:
        self._sandbox.post("fault", kind="error", action=ACTIONS[call], code="InternalError", status=500)

    def deny(self, *calls: Call) -> None:
        for call in calls:
            self._sandbox.post("fault", kind="unauthorized", action=ACTIONS[call], count=None)

    def lose_answer(self) -> None:
        self._sandbox.post("fault", kind="answer_lost", action="RunInstances")

    def empty(self, zone: str) -> None:
        self._sandbox.post("stock", zone=zone, count=0)

    def limit(self, machines: int) -> None:
        self._sandbox.post("quota", region=aws.REGION, family="G", vcpus=machines * _VCPUS)

    def lag(self) -> None:
        self._sandbox.post("delays", list_lag_s=30)

    def take(self, provider_id: str) -> None:
        self._sandbox.post("reclaim", machine_id=provider_id)
