"""Amazon's own prices: GetProducts of the price list for on-demand, the spot price history for spot."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from hostler.catalog.prices import PriceRow
from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.session import SessionSource
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.convert import CLOUD, price
from hostler.model.enums import CapacityType

_ASKED: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "locationType": "AWS Region",
}
"""Attributes of the products that we buy. Source: AWS Price List Query API, attributes of service AmazonEC2."""

_PAGE_SIZE: Final = 100
"""Most that GetProducts gives a page. Source: AWS Price List Query API, MaxResults."""

_PRODUCT: Final = "Linux/UNIX"
_SOURCE: Final = "AWS Price List"
_SPOT_SOURCE: Final = "EC2 spot price history"


class AwsPrices:
    """A ``catalog.prices.PriceSource``.

    The price list has an endpoint in a few regions only; China's has prices in yuan and is another partition.
    """

    def __init__(self, *, sessions: SessionSource, connection: str | None, timeout_s: float = 30) -> None:
        self._calls = Calls(sessions=sessions, connection=connection, timeout_s=timeout_s)

    def fetch(self, wanted: Mapping[str, Sequence[str]], now: datetime) -> tuple[PriceRow, ...]:
        """See the port. One call a type for all regions, and some a region for spot."""
        rows: dict[Any, PriceRow] = {}
        for is_china in (False, True):
            regions = {region: types for region, types in wanted.items() if region.startswith("cn-") is is_china}
            for row in self._on_demand(regions, "cn-northwest-1" if is_china else "us-east-1", now):
                rows[row.key, row.price_per_hour] = row
        for region, types in wanted.items():
            for row in self._spot(region, types, now):
                rows[row.key, row.price_per_hour] = row
        return tuple(rows.values())

    def _on_demand(self, wanted: Mapping[str, Sequence[str]], endpoint: str, now: datetime) -> Iterator[PriceRow]:
        types = sorted({name for names in wanted.values() for name in names})
        for name in types:
            filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in _ASKED.items()]
            filters.append({"Type": "TERM_MATCH", "Field": "instanceType", "Value": name})
            products = self._calls.pages(
                endpoint,
                "get_products",
                "PriceList",
                service="pricing",
                page_size=_PAGE_SIZE,
                ServiceCode="AmazonEC2",
                FormatVersion="aws_v1",
                Filters=filters,
            )
            for text in products:
                yield from _rows_of(_parsed(text), wanted, now)

    def _spot(self, region: str, types: Sequence[str], now: datetime) -> Iterable[PriceRow]:
        found = self._calls.pages(
            region,
            "describe_spot_price_history",
            "SpotPriceHistory",
            InstanceTypes=list(types),
            ProductDescriptions=[_PRODUCT],
            # From now on: EC2 then answers with the price in force of each zone, not with 90 days of changes.
            StartTime=now,
        )
        newest: dict[tuple[str, str], Mapping[str, Any]] = {}
        for item in found:
            pair = (item["InstanceType"], item["AvailabilityZone"])
            if pair not in newest or item["Timestamp"] > newest[pair]["Timestamp"]:
                newest[pair] = item
        for (name, zone), item in sorted(newest.items()):
            amount = price(item.get("SpotPrice"))
            if amount is not None:
                yield PriceRow(
                    cloud=CLOUD,
                    region=region,
                    zone=zone,
                    instance_type=name,
                    capacity_type=CapacityType.SPOT,
                    currency=_currency(region),
                    price_per_hour=amount,
                    priced_at=item["Timestamp"],
                    source=_SPOT_SOURCE,
                )


def _parsed(text: str) -> Mapping[str, Any]:
    """Returns a product. Raises CloudUnavailableError: the list is not what Amazon describes."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CloudUnavailableError("AWS Price List: a product is not JSON") from error
    if not isinstance(found, dict):
        raise CloudUnavailableError("AWS Price List: a product is not a JSON object")
    return found


def _rows_of(product: Mapping[str, Any], wanted: Mapping[str, Sequence[str]], now: datetime) -> Iterator[PriceRow]:
    """Yields the on-demand price of a product in a wanted region."""
    attributes = product.get("product", {}).get("attributes", {})
    region, name = attributes.get("regionCode", ""), attributes.get("instanceType", "")
    if name not in wanted.get(region, ()) or any(attributes.get(field, value) != value for field, value in _ASKED.items()):
        return
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        hourly = (item for item in term.get("priceDimensions", {}).values() if item.get("unit") == "Hrs")
        for currency, text in (pair for item in hourly for pair in item.get("pricePerUnit", {}).items()):
            amount = price(text)
            if amount is not None:
                yield PriceRow(
                    cloud=CLOUD,
                    region=region,
                    zone="",
                    instance_type=name,
                    capacity_type=CapacityType.ON_DEMAND,
                    currency=currency,
                    price_per_hour=amount,
                    priced_at=_time(term.get("effectiveDate")) or now,
                    source=_SOURCE,
                )


def _currency(region: str) -> str:
    return "CNY" if region.startswith("cn-") else "USD"


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
