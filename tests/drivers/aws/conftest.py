import pytest
from tests.clouds import aws


@pytest.fixture(scope="session")
def moto():
    server = aws.Moto()
    yield server
    server.stop()


@pytest.fixture
def front(moto, monkeypatch):
    aws.use_endpoint(monkeypatch, moto.front.url)
    yield moto.front
    moto.front.clear()


@pytest.fixture
def ec2(front):
    """The account as its owner sees it; every machine in it is ended afterwards."""
    client = aws.owner()
    yield client
    front.clear()
    aws.end_all(client)


@pytest.fixture
def image_id(ec2) -> str:
    return aws.image_of(ec2)


@pytest.fixture
def driver_for(image_id):
    def make(**changes):
        return aws.driver(changes.pop("image", image_id), **changes)

    return make
