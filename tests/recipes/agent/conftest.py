"""An S3 of its own for tests of what the agent ships and fetches."""

import boto3
import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="module")
def server():
    made = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    yield f"http://{host}:{port}"
    made.stop()


@pytest.fixture
def client(server):
    made = boto3.client("s3", endpoint_url=server, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    made.create_bucket(Bucket="bucket")
    yield made
    for entry in made.list_objects_v2(Bucket="bucket").get("Contents", ()):
        made.delete_object(Bucket="bucket", Key=entry["Key"])
    made.close()
