import os

import boto3
import pytest
from botocore.config import Config

import hostler_sandbox
from hostler_sandbox.server import SandboxOptions
from hostler_sandbox.state.cloud import Delays


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
    delays = Delays(pending_s=0.2, stopping_s=0.2, notice_s=0.2)
    with hostler_sandbox.start(SandboxOptions(folder=tmp_path_factory.mktemp("sandbox"), delays=delays)) as running:
        yield running


@pytest.fixture
def ec2(sandbox):
    sandbox.cloud.faults.clear()
    sandbox.cloud.stock.pools.clear()
    sandbox.cloud.stock.prices.clear()
    sandbox.cloud.stock.quotas.clear()
    client = client_of(sandbox, "ec2")
    yield client
    for machine in sandbox.cloud.all():
        sandbox.cloud.terminate(machine, "Client.UserInitiatedShutdown", "User initiated", by="test")
    client.close()


def client_of(sandbox, service, region="us-east-1"):
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=sandbox.aws_endpoint,
        aws_access_key_id="AKIASIMULATED",
        aws_secret_access_key="simulated",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=20),
    )
