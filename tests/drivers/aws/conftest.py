from datetime import UTC, datetime
from decimal import Decimal

import boto3
import pytest
from moto.server import ThreadedMotoServer

from hostler.cloud.driver import LaunchOrder
from hostler.cloud.tags import tags_for
from hostler.drivers.aws.driver import AwsDriver
from hostler.drivers.aws.settings import AwsSettings
from hostler.model.enums import CapacityType
from hostler.model.lease import client_token_for, intent_id_for
from hostler.model.offering import Offering
from hostler.wiring.sdk_sessions import SdkSessions

REGION = "us-east-1"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def moto_url():
    """Plain moto, a process-wide server on loopback: right shapes, but none of EC2's refusals."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws_environment(moto_url, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture
def ec2(aws_environment):
    """The account as its owner sees it; every machine in it is ended afterwards."""
    client = boto3.client("ec2", region_name=REGION)
    yield client
    # Moto fails on ending an ended instance.
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopped"]}]
    pages = client.describe_instances(Filters=alive)["Reservations"]
    found = [item["InstanceId"] for page in pages for item in page["Instances"]]
    if found:
        client.terminate_instances(InstanceIds=found)


@pytest.fixture
def image_id(ec2) -> str:
    return ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]


@pytest.fixture
def settings_for(image_id):
    def make(**changes) -> AwsSettings:
        return AwsSettings.model_validate({"regions": [REGION], "image": image_id, **changes})

    return make


@pytest.fixture
def driver_for(settings_for):
    def make(deployment="test-deployment", page_size=1000, **changes) -> AwsDriver:
        return AwsDriver(deployment=deployment, settings=settings_for(**changes), sessions=SdkSessions(), page_size=page_size)

    return make


def offering(**changes) -> Offering:
    values = {
        "cloud": "aws",
        "region": REGION,
        "zone": "us-east-1a",
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
    *, deployment="test-deployment", lease="lease0", slot=0, attempt=1, user_data="#cloud-config\n", **changes
) -> LaunchOrder:
    bought = offering(**changes)
    intent_id = intent_id_for(lease, slot, attempt)
    return LaunchOrder(
        name=intent_id,
        client_token=client_token_for(intent_id, bought.key),
        offering=bought,
        tags=tags_for(
            deployment=deployment, lease_id=lease, slot_index=slot, intent_id=intent_id, tenant="vision", extra={"team": "x"}
        ),
        user_data=user_data,
    )
