import json
import urllib.error
import urllib.request
from urllib.parse import urlencode

import boto3
import pytest
from botocore.config import Config

from hostler_sandbox import Delays, SandboxOptions, start

FAST = Delays(pending_s=0.05, shutting_down_s=0.05, stopping_s=0.05, boot_s=0.0)


class Rig:
    """A sandbox without nodes, and clients of Amazon's real SDK for it."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.fixtures = sandbox.info["fixtures"]
        self._clients = {}

    def client(self, service, region="us-east-1", attempts=1):
        key = (service, region, attempts)
        if key not in self._clients:
            self._clients[key] = boto3.client(
                service,
                region_name=region,
                endpoint_url=self.sandbox.info["aws_endpoint"],
                aws_access_key_id="AKIASIMULATED0000000",
                aws_secret_access_key="simulated",
                config=Config(
                    retries={"total_max_attempts": attempts, "mode": "standard"},
                    s3={"addressing_style": "path"},
                    read_timeout=20,
                    max_pool_connections=50,
                ),
            )
        return self._clients[key]

    @property
    def ec2(self):
        return self.client("ec2")

    def run(self, zone="us-east-1a", instance_type="p5.48xlarge", *, spot=False, region="us-east-1", count=1, **more):
        request = {
            "ImageId": self.fixtures["images"][f"{region}/gpu"],
            "InstanceType": instance_type,
            "MinCount": count,
            "MaxCount": count,
            **more,
        }
        if zone:
            request["Placement"] = {"AvailabilityZone": zone}
        if spot:
            request["InstanceMarketOptions"] = {"MarketType": "spot"}
        return self.client("ec2", region).run_instances(**request)

    def run_one(self, *args, **kwargs):
        return self.run(*args, **kwargs)["Instances"][0]["InstanceId"]

    def show(self, instance_id, region="us-east-1"):
        found = self.client("ec2", region).describe_instances(InstanceIds=[instance_id])
        return found["Reservations"][0]["Instances"][0]

    def state(self, instance_id):
        return self.show(instance_id)["State"]["Name"]

    def pass_s(self, seconds):
        """Pushes the sandbox's clock; then what became due has happened."""
        self.sandbox.clock.advance(seconds)
        assert self.sandbox.until_quiet()

    def control(self, name, body=None):
        url = f"{self.sandbox.info['control_url']}/_sandbox/{name}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data=data)) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def sandbox_answer(self, action, filters):
        """The raw answer, without the SDK's parsing: what the sandbox itself takes."""
        form = {"Action": action, "Version": "2016-11-15"}
        for number, one in enumerate(filters, 1):
            form[f"Filter.{number}.Name"] = one["Name"]
            form[f"Filter.{number}.Value.1"] = one["Values"][0]
        scope = "Credential=AKIASIMULATED0000000/20261201/us-east-1/ec2/aws4_request"
        headers = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"}
        request = urllib.request.Request(self.sandbox.aws_endpoint, data=urlencode(form).encode(), headers=headers)
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, answer.read()

    def post(self, name, **body):
        status, reply = self.control(name, body)
        assert status == 200, reply
        return reply


@pytest.fixture(scope="session")
def _sandbox(tmp_path_factory):
    options = SandboxOptions(folder=tmp_path_factory.mktemp("sandbox"), has_nodes=False, delays=FAST)
    with start(options) as sandbox:
        yield Rig(sandbox)


@pytest.fixture
def rig(_sandbox):
    _sandbox.post("reset")
    _sandbox.sandbox.estate.delays = FAST
    _sandbox.sandbox.clock.set_scale(1.0)
    _sandbox.sandbox.until_quiet()
    return _sandbox
