"""Lies of moto that the sandbox mends in S3 and KMS, and the control API's manners."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError
from tests.sandbox.aws.conftest import client_of


@pytest.fixture
def s3(sandbox):
    client = client_of(sandbox, "s3")
    yield client
    client.close()


def test_s3_when_the_md5_is_wrong_then_refused(s3):
    with pytest.raises(ClientError, match="BadDigest"):
        s3.put_object(Bucket="hostler-backups", Key="k", Body=b"x", ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg==")


def test_s3_when_the_kms_key_does_not_exist_then_refused(s3):
    with pytest.raises(ClientError, match="NotFoundException"):
        s3.put_object(Bucket="hostler-backups", Key="k", Body=b"x", ServerSideEncryption="aws:kms", SSEKMSKeyId="no-such-key")


def test_s3_when_put_and_read_then_the_same_bytes_and_if_none_match_holds(s3):
    s3.put_object(Bucket="hostler-backups", Key="a/b", Body=b"hello")
    assert s3.get_object(Bucket="hostler-backups", Key="a/b")["Body"].read() == b"hello"
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket="hostler-backups", Key="a/b", Body=b"other", IfNoneMatch="*")


def test_kms_when_a_key_is_disabled_then_it_encrypts_nothing(sandbox):
    kms = client_of(sandbox, "kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.encrypt(KeyId=key, Plaintext=b"x")
    kms.disable_key(KeyId=key)
    with pytest.raises(ClientError, match="DisabledException"):
        kms.encrypt(KeyId=key, Plaintext=b"x")
    kms.close()


def order(sandbox, path, document):
    request = Request(f"{sandbox.control_url}/_sandbox/{path}", data=json.dumps(document).encode(), method="POST")
    with urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize(
    ("path", "document", "words"),
    [
        ("stock", {"zone": "us-east-1a", "instance_type": "x", "capacity_type": "spot"}, "instance_type: allowed are"),
        ("stock", {"zone": "us-east-1a", "instance_type": "g5.xlarge", "capacity_type": "spot", "count": -1}, "count"),
        ("fault", {"kind": "earthquake"}, "kind: allowed are"),
        ("fault", {"kind": "throttle", "colour": "red"}, "unknown field"),
        ("interrupt", {"machine_id": "i-none"}, "machine_id"),
        ("price", {"zone": "z", "instance_type": "g5.xlarge", "capacity_type": "spot", "usd_per_hour": "NaN"}, "usd_per_hour"),
    ],
)
def test_control_when_an_order_is_wrong_then_400_names_field_and_what_is_allowed(sandbox, path, document, words):
    with pytest.raises(HTTPError) as caught:
        order(sandbox, path, document)
    assert caught.value.code == 400
    assert words in caught.value.read().decode()
    caught.value.close()


def test_control_when_stock_is_set_then_the_pool_has_it(sandbox):
    order(sandbox, "stock", {"zone": "us-east-1a", "instance_type": "g5.xlarge", "capacity_type": "spot", "count": 3})
    assert sandbox.cloud.stock.pools["us-east-1a", "g5.xlarge", "spot"] == 3
