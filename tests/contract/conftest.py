from collections.abc import Iterator

import pytest
from tests.clouds import aws
from tests.clouds.sandbox import SandboxProcess
from tests.contract.harness import CloudUnderTest, Power
from tests.contract.harness_fake import FakeUnderTest
from tests.contract.harness_moto import MotoUnderTest
from tests.contract.harness_sandbox import SandboxUnderTest


@pytest.fixture(scope="session")
def moto() -> Iterator[aws.Moto]:
    server = aws.Moto()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    process = SandboxProcess(tmp_path_factory.mktemp("sandbox"), "--no-nodes")
    yield process
    process.stop()


@pytest.fixture(params=["fake", "aws-on-moto", "aws-on-sandbox"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudUnderTest]:
    if request.param == "fake":
        yield FakeUnderTest()
        return
    if request.param == "aws-on-sandbox":
        sandbox = request.getfixturevalue("sandbox")
        aws.use_endpoint(monkeypatch, sandbox.facts["aws_endpoint"])
        yield SandboxUnderTest(sandbox)
        return
    moto = request.getfixturevalue("moto")
    aws.use_endpoint(monkeypatch, moto.front.url)
    yield MotoUnderTest(moto)
    moto.front.clear()
    aws.end_all(aws.owner())


def needs(cloud: CloudUnderTest, *powers: Power) -> None:
    """Skips the test where the cloud under test cannot play the scene."""
    missing = sorted(set(powers) - cloud.powers)
    if missing:
        pytest.skip(f"{type(cloud).__name__} cannot play: {', '.join(missing)}")
