import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.config import Config
from tests.clouds import aws

from hostler.cloud.errors import CloudAuthError, CloudConfigError
from hostler.wiring.sdk_sessions import SdkSessions


@pytest.fixture
def environment(monkeypatch):
    aws.use_endpoint(monkeypatch, "http://127.0.0.1:1")


def test_client_when_endpoint_is_in_the_environment_then_it_is_used(environment):
    client = SdkSessions().client("aws", "ec2", "eu-west-1", None)
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert client.meta.region_name == "eu-west-1"


def test_client_when_asked_again_then_the_same_one(environment):
    sessions = SdkSessions()
    first = sessions.client("aws", "ec2", "eu-west-1", None)
    assert sessions.client("aws", "ec2", "eu-west-1", "some-connection") is first
    assert sessions.client("aws", "ec2", "eu-west-2", None) is not first
    assert sessions.client("aws", "s3", "eu-west-1", None) is not first


def test_client_when_options_differ_then_each_has_its_own(environment):
    sessions = SdkSessions()
    options = [Config(read_timeout=number) for number in (7, 8)]
    first, second = (sessions.client("aws", "ec2", "eu-west-1", None, item) for item in options)
    assert (first.meta.config.read_timeout, second.meta.config.read_timeout) == (7, 8)
    assert sessions.client("aws", "ec2", "eu-west-1", None, options[0]) is first


def test_client_when_eight_threads_ask_then_one_client(environment):
    sessions = SdkSessions()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: id(sessions.client("aws", "ec2", "eu-west-1", None)), range(8)))
    assert len(found) == 1


def test_client_when_there_are_no_credentials_then_auth_error(environment, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CloudAuthError, match="no AWS credentials"):
        SdkSessions().client("aws", "ec2", "eu-west-1", None)


def test_client_when_cloud_is_unknown_then_config_error():
    with pytest.raises(CloudConfigError, match="'acme'"):
        SdkSessions().client("acme", "vm", "north", None)


def test_import_when_unused_then_no_sdk_is_loaded():
    modules = "hostler.wiring.sdk_sessions as m, hostler.drivers.aws.driver"
    code = f"import sys, {modules}; m.SdkSessions(); print('boto' in str(list(sys.modules)))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "False"
