"""Alibaba Cloud's prices, signed."""

from decimal import Decimal

import pytest
from tests.clouds.price_apis import ACCESS_KEY, AT, Refusal

from hostler.cloud.errors import CloudConfigError, CloudThrottledError
from hostler.drivers.alibaba.prices import AlibabaPrices
from hostler.drivers.alibaba.rpc import signature

T4 = "ecs.gn6i-c4g1.xlarge"
WANTED = {"cn-beijing": (T4, "ecs.gn7i-c8g1.2xlarge")}


@pytest.fixture
def prices(apis):
    return AlibabaPrices(access_key=":".join(ACCESS_KEY), endpoint_url=apis.url)


def test_fetch_when_sold_then_the_machine_without_its_disk_and_newest_spot_price_of_each_zone(apis, prices):
    apis.sell_alibaba("cn-beijing", T4, 8.38, spot={"cn-beijing-a": [3.0, 2.0, 2.5], "cn-beijing-b": [1.0]})
    rows = prices.fetch(WANTED, AT)
    assert {(row.zone, str(row.capacity_type)): row.price_per_hour for row in rows} == {
        ("", "on-demand"): Decimal("8.38"),
        ("cn-beijing-a", "spot"): Decimal("2.5"),
        ("cn-beijing-b", "spot"): Decimal("1.0"),
    }
    assert {row.currency for row in rows} == {"CNY"}


def test_fetch_when_type_is_not_sold_there_then_left_out(prices):
    assert prices.fetch(WANTED, AT) == ()


def test_fetch_when_price_is_zero_then_none(apis, prices):
    apis.sell_alibaba("cn-beijing", T4, 0)
    assert prices.fetch(WANTED, AT) == ()


def test_fetch_when_key_is_wrong_then_stop_and_secret_is_not_told(apis):
    apis.sell_alibaba("cn-beijing", T4, 8.38)
    with pytest.raises(CloudConfigError) as caught:
        AlibabaPrices(access_key="LTAI-other:wrong-secret", endpoint_url=apis.url).fetch(WANTED, AT)
    assert "SignatureDoesNotMatch" in str(caught.value)
    assert "wrong-secret" not in str(caught.value)


def test_fetch_when_throttled_with_status_400_then_throttled(apis, prices):
    apis.refusals.append(
        Refusal(400, b'{"Code": "Throttling.User", "Message": "Request was denied due to user flow control."}')
    )
    with pytest.raises(CloudThrottledError):
        prices.fetch(WANTED, AT)


def test_key_when_not_a_pair_then_refused():
    with pytest.raises(CloudConfigError, match="id:secret"):
        AlibabaPrices(access_key="only-an-id")


def test_signature_when_of_the_published_example_then_the_published_value():
    # Source: the RPC signature page of Alibaba Cloud: DescribeRegions with the key testid / testsecret.
    arguments = {
        "AccessKeyId": "testid",
        "Action": "DescribeRegions",
        "Format": "XML",
        "SignatureMethod": "HMAC-SHA1",
        "SignatureNonce": "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf",
        "SignatureVersion": "1.0",
        "Timestamp": "2016-02-23T12:46:24Z",
        "Version": "2014-05-26",
    }
    assert signature("GET", arguments, "testsecret") == "OLeaidS1JvxuMvnyHOwuJ+uX5qY="
