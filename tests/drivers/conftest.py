import pytest
from tests.clouds.price_apis import PriceApis


@pytest.fixture
def apis():
    """Price APIs that sell nothing yet."""
    made = PriceApis()
    yield made
    made.stop()
