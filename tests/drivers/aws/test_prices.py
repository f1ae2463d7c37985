"""Amazon's price list and spot history through boto3."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.clouds.price_apis import AT, Refusal

from hostler.cloud.errors import CloudAuthError, CloudThrottledError, CloudUnavailableError
from hostler.drivers.aws.prices import AwsPrices
from hostler.model.enums import CapacityType
from hostler.wiring.sdk_sessions import SdkSessions

WANTED = {"us-east-1": ("g5.xlarge", "p5.48xlarge"), "us-west-2": ("p5.48xlarge",)}


@pytest.fixture
def prices(apis, monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL": apis.url,
        "AWS_ACCESS_KEY_ID": "made-up",
        "AWS_SECRET_ACCESS_KEY": "made-up",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    return AwsPrices(sessions=SdkSessions(), connection=None, timeout_s=10)


def spot(zone, name, price, at="2026-11-30T11:00:00.000Z"):
    place = {"instanceType": name, "availabilityZone": zone, "productDescription": "Linux/UNIX"}
    return {**place, "spotPrice": price, "timestamp": at}


def told(rows):
    return {(row.region, row.zone, row.instance_type, str(row.capacity_type)): row.price_per_hour for row in rows}


def test_fetch_when_sold_then_on_demand_by_region_and_spot_by_zone_to_the_last_page(apis, prices):
    for region in ("ap-south-1", "eu-west-1", "us-east-1", "us-west-2"):
        apis.sell_aws(region, "p5.48xlarge", "55.04")
    apis.sell_aws("us-east-1", "g5.xlarge", "1.006")
    apis.aws_spot += [spot(f"us-east-1{zone}", "g5.xlarge", f"0.{number}") for number, zone in enumerate("abc", start=3)]
    rows = prices.fetch(WANTED, AT)
    assert told(rows) == {
        ("us-east-1", "", "p5.48xlarge", "on-demand"): Decimal("55.04"),
        ("us-west-2", "", "p5.48xlarge", "on-demand"): Decimal("55.04"),
        ("us-east-1", "", "g5.xlarge", "on-demand"): Decimal("1.006"),
        ("us-east-1", "us-east-1a", "g5.xlarge", "spot"): Decimal("0.3"),
        ("us-east-1", "us-east-1b", "g5.xlarge", "spot"): Decimal("0.4"),
        ("us-east-1", "us-east-1c", "g5.xlarge", "spot"): Decimal("0.5"),
    }
    on_demand = [row for row in rows if row.capacity_type is CapacityType.ON_DEMAND]
    assert {row.priced_at for row in on_demand} == {datetime(2026, 11, 1, tzinfo=UTC)}
    assert {row.currency for row in rows} == {"USD"}


def test_fetch_when_product_is_another_or_costs_nothing_then_left_out(apis, prices):
    apis.sell_aws("us-east-1", "g5.xlarge", "9", operatingSystem="Windows")
    apis.sell_aws("us-east-1", "g5.xlarge", "9", tenancy="Dedicated")
    apis.sell_aws("us-east-1", "g5.xlarge", "9", capacitystatus="UnusedCapacityReservation")
    apis.sell_aws("us-east-1", "g5.xlarge", "0.0000000000")
    assert prices.fetch(WANTED, AT) == ()


def test_fetch_when_zone_has_two_spot_prices_then_the_newer(apis, prices):
    apis.aws_spot += [
        spot("us-east-1a", "g5.xlarge", "0.5", "2026-11-30T11:00:00.000Z"),
        spot("us-east-1a", "g5.xlarge", "0.4", "2026-11-30T10:00:00.000Z"),
    ]
    assert list(told(prices.fetch(WANTED, AT)).values()) == [Decimal("0.5")]


def test_fetch_when_region_is_in_china_then_asked_there_and_in_yuan(apis, prices):
    apis.sell_aws("cn-north-1", "g5.xlarge", "9.51389", currency="CNY")
    apis.aws_spot.append(spot("cn-north-1a", "g5.xlarge", "3.1"))
    rows = prices.fetch({"cn-north-1": ("g5.xlarge",)}, AT)
    assert {(row.currency, row.price_per_hour) for row in rows} == {("CNY", Decimal("9.51389")), ("CNY", Decimal("3.1"))}


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (Refusal(400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'), CloudThrottledError),
        (Refusal(400, b'{"__type": "AccessDeniedException", "message": "no"}'), CloudAuthError),
        (Refusal(500, b'{"__type": "InternalErrorException", "message": "oops"}'), CloudUnavailableError),
    ],
)
def test_fetch_when_refused_then_drawn_and_asked_once(apis, prices, refusal, error):
    apis.refusals.append(refusal)
    with pytest.raises(error):
        prices.fetch(WANTED, AT)
    assert apis.refusals == []
    assert apis.calls == []
