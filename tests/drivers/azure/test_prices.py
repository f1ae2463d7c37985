"""Azure's retail prices."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.clouds.price_apis import AT, Refusal

from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudThrottledError, CloudUnavailableError
from hostler.drivers.azure.prices import AzurePrices

T4 = "Standard_NC4as_T4_v3"
WANTED = {"eastus": (T4,), "westus": (T4,)}


@pytest.fixture
def prices(apis):
    return AzurePrices(endpoint_url=apis.url, timeout_s=10)


def test_fetch_when_sold_then_both_capacity_types_of_wanted_regions_to_the_last_page(apis, prices):
    for region in ("brazilsouth", "eastus", "westus", "norwayeast"):
        apis.sell_azure(region, T4, 0.526)
        apis.sell_azure(region, T4, 0.0684, suffix=" Spot")
    rows = prices.fetch(WANTED, AT)
    assert {(row.region, str(row.capacity_type)): row.price_per_hour for row in rows} == {
        ("eastus", "on-demand"): Decimal("0.526"),
        ("eastus", "spot"): Decimal("0.0684"),
        ("westus", "on-demand"): Decimal("0.526"),
        ("westus", "spot"): Decimal("0.0684"),
    }
    assert {(row.zone, row.currency, row.priced_at) for row in rows} == {("", "USD", datetime(2026, 11, 1, tzinfo=UTC))}
    assert len([call for call in apis.calls if call[0] == "retail"]) == 4


def test_fetch_when_meter_is_another_then_left_out(apis, prices):
    apis.sell_azure("eastus", T4, 0.9, product="Virtual Machines NC Series Windows")
    apis.sell_azure("eastus", T4, 0.1, suffix=" Low Priority")
    apis.sell_azure("eastus", T4, 0.1, type="DevTestConsumption")
    apis.sell_azure("eastus", T4, 4000.0, unitOfMeasure="1 Year")
    apis.sell_azure("eastus", T4, 0.0)
    assert prices.fetch(WANTED, AT) == ()


def test_fetch_when_meter_has_a_newer_price_then_that(apis, prices):
    apis.sell_azure("eastus", T4, 0.6, effectiveStartDate="2026-11-20T00:00:00Z")
    apis.sell_azure("eastus", T4, 0.5, effectiveStartDate="2026-01-20T00:00:00Z")
    assert [row.price_per_hour for row in prices.fetch(WANTED, AT)] == [Decimal("0.6")]


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (Refusal(429, headers={"Retry-After": "7"}), CloudThrottledError),
        (Refusal(503), CloudUnavailableError),
        (Refusal(400, b"bad filter"), CloudConfigError),
        (Refusal(401), CloudAuthError),
        (Refusal(200, b"<html>"), CloudUnavailableError),
        (Refusal(200, b"[]"), CloudUnavailableError),
        (
            Refusal(200, b'{"Items": [], "NextPageLink": "http://example.invalid/api/retail/prices?page=2"}'),
            CloudConfigError,
        ),
    ],
)
def test_fetch_when_answer_is_no_list_then_drawn(apis, prices, refusal, error):
    apis.refusals.append(refusal)
    with pytest.raises(error) as caught:
        prices.fetch(WANTED, AT)
    assert "/api/retail/prices" in str(caught.value)
    assert getattr(caught.value, "retry_after_s", None) == (7.0 if error is CloudThrottledError else None)


def test_fetch_when_nobody_listens_then_unavailable(apis, prices):
    apis.stop()
    with pytest.raises(CloudUnavailableError):
        prices.fetch(WANTED, AT)
