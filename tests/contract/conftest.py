from collections.abc import Iterator

import pytest
from tests.clouds import aws
from tests.contract.harness import CloudUnderTest, Power
from tests.contract.harness_fake import FakeUnderTest
from tests.contract.harness_moto import MotoUnderTest


@pytest.fixture(scope="session")
def moto() -> Iterator[aws.Moto]:
    server = aws.Moto()
    yield server
    server.stop()


@pytest.fixture(params=["fake", "aws-on-moto"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudUnderTest]:
    if request.param == "fake":
        yield FakeUnderTest()
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
