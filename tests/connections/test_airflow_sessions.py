"""Clients and secrets out of Airflow's connections."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudUnavailableError
from hostler.connections.airflow_sessions import AirflowSessions, secret
from hostler.connections.provider_info import get_provider_info

KEY = "AKIAMADEUPFORATEST01"
SECRET_KEY = "made-up-secret-key-that-must-not-leak"


@pytest.fixture
def connection(monkeypatch):
    content = {
        "conn_type": "aws",
        "login": KEY,
        "password": SECRET_KEY,
        "extra": {"endpoint_url": "http://127.0.0.1:9", "region_name": "us-west-2"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_FLEET_AWS", json.dumps(content))
    return "fleet_aws"


def test_client_when_the_connection_names_an_endpoint_then_used(connection):
    client = AirflowSessions().client("aws", "ec2", "eu-west-1", connection)
    assert client.meta.endpoint_url == "http://127.0.0.1:9"
    assert client.meta.region_name == "eu-west-1"
    assert client._request_signer._credentials.access_key == KEY


def test_client_when_options_are_given_then_honoured(connection):
    from botocore.config import Config

    options = Config(retries={"max_attempts": 1}, connect_timeout=3)
    client = AirflowSessions().client("aws", "ec2", "eu-west-1", connection, options)
    assert client.meta.config.connect_timeout == 3
    assert client.meta.config.retries["total_max_attempts"] == 2


def test_client_when_asked_again_then_the_same_and_by_region_and_service_another(connection):
    sessions = AirflowSessions()
    first = sessions.client("aws", "ec2", "eu-west-1", connection)
    assert sessions.client("aws", "ec2", "eu-west-1", connection) is first
    assert sessions.client("aws", "ec2", "us-east-1", connection) is not first
    assert sessions.client("aws", "s3", "eu-west-1", connection) is not first


def test_client_when_asked_by_many_threads_then_made_once(connection):
    sessions, gate = AirflowSessions(), threading.Barrier(8)

    def ask(_number):
        gate.wait()
        return sessions.client("aws", "ec2", "eu-west-1", connection)

    with ThreadPoolExecutor(8) as pool:
        clients = list(pool.map(ask, range(8)))
    assert len({id(client) for client in clients}) == 1


def test_client_when_the_content_is_wrong_then_the_error_names_the_connection_and_nothing_of_its_content(monkeypatch):
    broken = {"conn_type": "aws", "login": KEY, "password": SECRET_KEY, "extra": {"role_arn": "x", "assume_role_method": "?"}}
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", json.dumps(broken))
    with pytest.raises(CloudAuthError, match="broken") as error:
        AirflowSessions().client("aws", "ec2", "eu-west-1", "broken")
    assert SECRET_KEY not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_client_when_the_cloud_is_unknown_then_says_which_are_known(connection):
    with pytest.raises(CloudConfigError, match="aws"):
        AirflowSessions().client("moon", "ec2", "x", connection)


def test_secret_when_a_connection_has_a_password_then_that_one(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_WANDB", json.dumps({"conn_type": "http", "password": "made-up-token"}))
    assert secret("wandb") == "made-up-token"


def test_secret_when_there_is_only_a_variable_then_its_value(monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_HUB_TOKEN", "made-up-variable")
    assert secret("hub_token") == "made-up-variable"


def test_secret_when_read_then_masked_in_logs_from_then_on(monkeypatch):
    from airflow.sdk.log import redact

    monkeypatch.setenv("AIRFLOW_VAR_HUB_TOKEN", "made-up-value-to-mask")
    secret("hub_token")
    assert "made-up-value-to-mask" not in str(redact("said made-up-value-to-mask aloud"))


def test_secret_when_there_is_none_then_the_error_names_it():
    with pytest.raises(KeyError, match="nowhere"):
        secret("nowhere")


def test_provider_info_when_read_by_airflow_then_valid():
    import jsonschema
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    manager.initialize_providers_list()
    assert "hostler" in manager.providers
    schema = manager._provider_schema_validator.schema
    jsonschema.validate(get_provider_info(), schema)


class Line:
    """The pipe to the task's supervisor. ``answer``: an error to raise or a word of Airflow's own."""

    def __init__(self, answer) -> None:
        self.answer = answer

    def send(self, _question):
        if isinstance(self.answer, Exception):
            raise self.answer
        from airflow.sdk.exceptions import ErrorType
        from airflow.sdk.execution_time.comms import ErrorResponse

        return ErrorResponse(error=ErrorType[self.answer])


@pytest.fixture
def line(monkeypatch):
    from airflow.sdk.execution_time import task_runner

    def lay(answer):
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Line(answer), raising=False)

    return lay


@pytest.mark.parametrize("answer", [BrokenPipeError(), ConnectionResetError(), EOFError(), "API_SERVER_ERROR", "GENERIC_ERROR"])
def test_client_when_airflow_cannot_be_asked_then_unavailable_and_not_revoked(line, answer):
    line(answer)
    with pytest.raises(CloudUnavailableError, match="not_there"):
        AirflowSessions().client("aws", "ec2", "eu-west-1", "not_there")


def test_client_when_airflow_says_that_there_is_no_connection_then_an_operator_is_needed(line):
    line("CONNECTION_NOT_FOUND")
    with pytest.raises(CloudAuthError, match="'not_there' does not exist in Airflow"):
        AirflowSessions().client("aws", "ec2", "eu-west-1", "not_there")


def test_client_when_there_is_no_connection_then_the_credentials_that_lie_about_are_not_taken(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    with pytest.raises(CloudAuthError, match="not_there"):
        AirflowSessions().client("aws", "ec2", "eu-west-1", "not_there")


def test_client_when_the_line_breaks_while_the_hook_works_then_unavailable(connection, monkeypatch):
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

    def broken(*_args, **_kwargs):
        raise BrokenPipeError

    monkeypatch.setattr(AwsBaseHook, "get_client_type", broken)
    with pytest.raises(CloudUnavailableError, match="BrokenPipeError"):
        AirflowSessions().client("aws", "ec2", "eu-west-1", connection)


def test_secret_when_airflow_cannot_be_asked_then_again_later_and_not_absent(line):
    line(BrokenPipeError())
    with pytest.raises(ConnectionError, match="no_such_secret"):
        secret("no_such_secret")
    line("CONNECTION_NOT_FOUND")
    with pytest.raises(KeyError, match="no_such_secret"):
        secret("no_such_secret")
