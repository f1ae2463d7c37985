from collections.abc import Iterator

import pytest
from tests.clouds import aws
from tests.clouds.sandbox import SandboxProcess
from tests.contract.harness import CloudUnderTest, Power
from tests.contract.harness_fake import FakeUnderTest
from tests.contract.harness_sandbox import OPTIONS, SandboxUnderTest


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    process = SandboxProcess(tmp_path_factory.mktemp("sandbox"), *OPTIONS)
    yield process
    process.stop()


@pytest.fixture(params=["fake", pytest.param("aws-on-sandbox", marks=pytest.mark.sandbox)])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudUnderTest]:
    """Every driver, one after the other: a new one is added here."""
    if request.param == "fake":
        yield FakeUnderTest()
        return
    sandbox = request.getfixturevalue("sandbox")
    aws.use_endpoint(monkeypatch, sandbox.aws_url)
    yield SandboxUnderTest(sandbox)
    sandbox.reset()


def needs(cloud: CloudUnderTest, *powers: Power) -> None:
    """Skips the test where the cloud under test cannot play the scene."""
    missing = sorted(set(powers) - cloud.powers)
    if missing:
        pytest.skip(f"{type(cloud).__name__} cannot play: {', '.join(missing)}")
