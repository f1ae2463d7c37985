import http.client
import json
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from hostler_sandbox.nodes_port import RoleCredentials

KEYS = RoleCredentials(
    role_name="node-role",
    access_key_id="AKIDTEST",
    secret_access_key="s3cret",
    session_token="tok",
    expires_at=datetime(2030, 1, 1, tzinfo=UTC),
)


class Service:
    def __init__(self, url: str) -> None:
        self.parts = urlsplit(url)

    def ask(self, method: str, path: str, **headers) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=5)
        connection.request(
            method, self.parts.path + path, headers={key.replace("_", "-"): value for key, value in headers.items()}
        )
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body

    def token(self) -> str:
        status, token = self.ask("PUT", "/latest/api/token", X_aws_ec2_metadata_token_ttl_seconds="60")
        assert status == 200
        return token

    def get(self, path: str) -> tuple[int, str]:
        return self.ask("GET", path, X_aws_ec2_metadata_token=self.token())


@pytest.fixture(params=["own address", "by name"])
def service(boot, request):
    node = boot(credentials=KEYS)
    own = node.ok("echo $AWS_EC2_METADATA_SERVICE_ENDPOINT").strip()
    made = Service(own if request.param == "own address" else f"{node.bench.runtime.metadata_url()}/{node.id}")
    made.node = node
    return made


def test_metadata_when_token_is_missing_or_wrong_then_401(service):
    assert service.ask("GET", "/latest/meta-data/instance-id")[0] == 401
    assert service.ask("GET", "/latest/meta-data/instance-id", X_aws_ec2_metadata_token="x")[0] == 401


def test_token_when_asked_wrongly_then_refused(service):
    assert service.ask("GET", "/latest/api/token")[0] == 405
    assert service.ask("PUT", "/latest/api/token")[0] == 400
    assert service.ask("PUT", "/latest/api/token", X_aws_ec2_metadata_token_ttl_seconds="21601")[0] == 400
    assert (
        service.ask("PUT", "/latest/api/token", X_aws_ec2_metadata_token_ttl_seconds="60", X_Forwarded_For="1.2.3.4")[0] == 400
    )


def test_metadata_when_asked_with_token_then_tells_of_this_node(service):
    spec = service.node.spec
    assert service.get("/latest/meta-data/instance-id") == (200, spec.node_id)
    assert service.get("/latest/meta-data/placement/availability-zone") == (200, "us-east-1a")
    assert service.get("/latest/meta-data/placement/") == (200, "availability-zone\nregion")
    assert service.get("/latest/meta-data/tags/instance/Name") == (200, "n1")
    assert json.loads(service.get("/latest/dynamic/instance-identity/document")[1]) == spec.identity
    assert service.get("/latest/meta-data/nothing")[0] == 404
    assert service.get("/latest/meta-data/iam/security-credentials/") == (200, "node-role")
    given = json.loads(service.get("/latest/meta-data/iam/security-credentials/node-role")[1])
    assert (given["AccessKeyId"], given["Token"], given["Expiration"]) == ("AKIDTEST", "tok", "2030-01-01T00:00:00Z")


def test_notice_when_set_then_shown_until_taken_away(service):
    path = "spot/instance-action"
    assert service.get(f"/latest/meta-data/{path}")[0] == 404
    service.node.bench.runtime.set_metadata(service.node.id, path, '{"action": "terminate"}')
    assert service.get(f"/latest/meta-data/{path}") == (200, '{"action": "terminate"}')
    service.node.bench.runtime.set_metadata(service.node.id, path, None)
    assert service.get(f"/latest/meta-data/{path}")[0] == 404


def test_botocore_when_on_the_node_then_finds_region_and_role_credentials(boot, monkeypatch):
    utils = pytest.importorskip("botocore.utils")
    node = boot(credentials=KEYS)
    fetcher = utils.InstanceMetadataFetcher(base_url=node.ok("echo $AWS_EC2_METADATA_SERVICE_ENDPOINT").strip() + "/")
    found = fetcher.retrieve_iam_role_credentials()
    assert (found["access_key"], found["role_name"]) == ("AKIDTEST", "node-role")


def test_metadata_when_node_has_no_role_then_404(boot):
    node = boot()
    service = Service(node.ok("echo $AWS_EC2_METADATA_SERVICE_ENDPOINT").strip())
    assert service.get("/latest/meta-data/iam/security-credentials/")[0] == 404
