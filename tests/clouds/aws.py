"""An AWS account on loopback for tests: plain moto behind a faulty front, and orders that fit it."""

import os
from decimal import Decimal
from functools import lru_cache
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.clouds.front import Front

from hostler.cloud.driver import LaunchOrder
from hostler.cloud.tags import tags_for
from hostler.drivers.aws.driver import AwsDriver
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType
from hostler.model.lease import client_token_for, intent_id_for
from hostler.model.offering import Offering
from hostler.wiring.sdk_sessions import SdkSessions

REGION = "us-east-1"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
DEPLOYMENT = "test-deployment"
IMAGE = "ami-0a1b2c3d4e5f60718"

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Moto:
    """Plain moto in this process: right shapes, but none of EC2's refusals."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.front = Front(f"http://{host}:{port}")

    def stop(self) -> None:
        self.front.stop()
        self._server.stop()


def use_endpoint(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Points the SDK's default chain of this process at a server."""
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def owner(service: str = "ec2", region: str = REGION) -> Any:
    """Returns a client of the account's owner, who sees and may do everything; does not go by the driver."""
    return _session().client(service, region_name=region, endpoint_url=os.environ["AWS_ENDPOINT_URL"])


@lru_cache(maxsize=1)
def _session() -> Any:
    """One for all tests: it keeps the vendor's models, which take half a second to read."""
    return boto3.Session(aws_access_key_id="owner", aws_secret_access_key="owner")


@lru_cache(maxsize=4)
def sessions(url: str) -> SdkSessions:
    """One for each server, as above."""
    del url
    return SdkSessions()


def image_of(ec2: Any) -> str:
    """Returns an image of the account with a root device, made at the first call."""
    found = [image["ImageId"] for image in ec2.describe_images(Owners=["self"])["Images"] if image.get("RootDeviceName")]
    if found:
        return str(min(found))
    return str(ec2.register_image(Name="node", RootDeviceName="/dev/sda1", Architecture="x86_64")["ImageId"])


def end_all(ec2: Any) -> None:
    """Ends every machine of the account."""
    # Moto fails on ending an ended instance.
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopped"]}]
    pages = ec2.describe_instances(Filters=alive)["Reservations"]
    found = [item["InstanceId"] for page in pages for item in page["Instances"]]
    if found:
        ec2.terminate_instances(InstanceIds=found)


def driver(image: str, *, deployment: str = DEPLOYMENT, page_size: int = 1000, **changes: Any) -> AwsDriver:
    settings = AwsSettings.model_validate({"regions": [REGION], "image": image, **changes})
    source = sessions(os.environ["AWS_ENDPOINT_URL"])
    return AwsDriver(deployment=deployment, settings=settings, sessions=source, page_size=page_size)


def offering(**changes: Any) -> Offering:
    values = {
        "cloud": "aws",
        "region": REGION,
        "zone": ZONES[0],
        "instance_type": "g6.xlarge",
        "capacity_type": CapacityType.ON_DEMAND,
        "accelerator": "L4",
        "accelerator_count": 1,
        "vcpu_count": 4,
        "memory_mib": 16384,
        "price_usd_per_hour": Decimal("0.8048"),
    }
    return Offering(**{**values, **changes})


def order(
    *,
    deployment: str = DEPLOYMENT,
    lease: str = "lease0",
    slot: int = 0,
    attempt: int = 1,
    user_data: str = "#cloud-config\n",
    **changes: Any,
) -> LaunchOrder:
    bought = offering(**changes)
    intent_id = intent_id_for(lease, slot, attempt)
    tags = tags_for(
        deployment=deployment, lease_id=lease, slot_index=slot, intent_id=intent_id, tenant="vision", extra={"team": "x"}
    )
    return LaunchOrder(
        name=intent_id,
        client_token=client_token_for(intent_id, bought.key),
        offering=bought,
        tags=tags,
        user_data=user_data,
    )
