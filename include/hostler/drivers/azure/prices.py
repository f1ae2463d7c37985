"""Azure's own prices: the Retail Prices API, which needs no account."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from hostler.catalog.prices import PriceRow
from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.json_http import ask, same_place
from hostler.model.enums import CapacityType

ENDPOINT: Final = "https://prices.azure.com"

_PATH: Final = "/api/retail/prices"
_VERSION: Final = "2023-01-01-preview"
_CURRENCY: Final = "USD"
_HOUR: Final = "1 Hour"
_SOURCE: Final = "Azure Retail Prices"
_MOST_PAGES: Final = 1000
"""A type has some hundred meters, 1000 a page; more is a list that goes in a circle."""


class AzurePrices:
    """A ``catalog.prices.PriceSource``. Source of all fields: learn.microsoft.com/rest/api/cost-management/retail-prices."""

    def __init__(self, *, endpoint_url: str | None = None, timeout_s: float = 30) -> None:
        self._url = (endpoint_url or ENDPOINT).rstrip("/") + _PATH
        self._timeout_s = timeout_s

    def fetch(self, wanted: Mapping[str, Sequence[str]], now: datetime) -> tuple[PriceRow, ...]:
        """See the port. Some calls a type, each for all regions."""
        types = sorted({name for names in wanted.values() for name in names})
        newest: dict[Any, PriceRow] = {}
        for name in types:
            for item in self._items(name):
                row = _row_of(item, wanted, now)
                if row is not None and (row.key not in newest or row.priced_at >= newest[row.key].priced_at):
                    newest[row.key] = row
        return tuple(newest.values())

    def _items(self, instance_type: str) -> Iterator[Mapping[str, Any]]:
        """Yields every meter of a type, to the last page."""
        wanted = f"serviceName eq 'Virtual Machines' and armSkuName eq '{instance_type}' and priceType eq 'Consumption'"
        query = {"api-version": _VERSION, "currencyCode": _CURRENCY, "$filter": wanted}
        answer = ask(self._url, query=query, timeout_s=self._timeout_s)
        for _ in range(_MOST_PAGES):
            yield from answer.get("Items") or ()
            link = answer.get("NextPageLink")
            if not link:
                return
            answer = ask(same_place(self._url, str(link)), timeout_s=self._timeout_s)
        raise CloudUnavailableError(f"{_SOURCE}: the list of {instance_type} has no end")


def _row_of(item: Mapping[str, Any], wanted: Mapping[str, Sequence[str]], now: datetime) -> PriceRow | None:
    """Returns the price of a Linux machine; None for another meter, another place, and for one without a price."""
    region, name = str(item.get("armRegionName", "")), str(item.get("armSkuName", ""))
    if name not in wanted.get(region, ()) or item.get("type") != "Consumption" or item.get("unitOfMeasure") != _HOUR:
        return None
    words = f"{item.get('productName', '')} {item.get('skuName', '')} {item.get('meterName', '')}"
    if "Windows" in words or "Low Priority" in words or "CloudServices" in words.replace(" ", ""):
        return None
    is_spot = str(item.get("skuName", "")).endswith(" Spot")
    amount = _amount(item.get("retailPrice"))
    if amount is None:
        return None
    return PriceRow(
        cloud="azure",
        region=region,
        zone="",
        instance_type=name,
        capacity_type=CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND,
        currency=str(item.get("currencyCode", "")),
        price_per_hour=amount,
        priced_at=_time(item.get("effectiveStartDate")) or now,
        source=_SOURCE,
    )


def _amount(value: object) -> Decimal | None:
    """Returns a price; None for none and for zero."""
    try:
        found = Decimal(str(value))
    except ArithmeticError:
        return None
    return found if found.is_finite() and found != 0 else None


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
