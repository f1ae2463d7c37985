"""Google's own prices: the Cloud Billing catalog, asked with an API key."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from hostler.catalog.layout_skypilot_google import tpu_slice
from hostler.catalog.prices import PriceRow
from hostler.catalog.specs import machine_specs
from hostler.cloud.errors import CloudUnavailableError
from hostler.cloud.json_http import ask
from hostler.drivers.gcp.skus import PriceList, Sku, sku_of
from hostler.model.enums import CapacityType

ENDPOINT: Final = "https://cloudbilling.googleapis.com"

_SERVICE: Final = "services/6F81-5844-456A"
"""Compute Engine. Source: cloud.google.com/skus."""

_PAGE_SIZE: Final = 5000
_MOST_PAGES: Final = 100
_CURRENCY: Final = "USD"
_SOURCE: Final = "Google Cloud Billing catalog"
_EXACT: Final = Decimal("0.000001")


class GooglePrices:
    """A ``catalog.prices.PriceSource``. Source of all fields: cloud.google.com/billing/docs/reference/rest/v1/services.skus."""

    def __init__(self, *, api_key: str, endpoint_url: str | None = None, timeout_s: float = 30) -> None:
        self._url = f"{(endpoint_url or ENDPOINT).rstrip('/')}/v1/{_SERVICE}/skus"
        self._key = api_key
        self._timeout_s = timeout_s

    def fetch(self, wanted: Mapping[str, Sequence[str]], now: datetime) -> tuple[PriceRow, ...]:  # noqa: ARG002  # the list has its own times
        """See the port. Reads the whole list of Compute Engine: some 10 pages."""
        skus = list(self._skus())
        rows = []
        for region, names in wanted.items():
            for kind in (CapacityType.ON_DEMAND, CapacityType.SPOT):
                prices = PriceList(skus, region, kind)
                rows += [row for name in names if (row := _row_of(prices, region, name, kind)) is not None]
        return tuple(rows)

    def _skus(self) -> Iterator[Sku]:
        """Yields the lines that matter, to the last page."""
        query = {"pageSize": str(_PAGE_SIZE), "currencyCode": _CURRENCY}
        for _ in range(_MOST_PAGES):
            # The key goes into a header: an address ends up in logs and errors.
            answer = ask(self._url, query=query, headers={"X-Goog-Api-Key": self._key}, timeout_s=self._timeout_s)
            for raw in answer.get("skus") or ():
                sku = sku_of(raw)
                if sku is not None:
                    yield sku
            token = answer.get("nextPageToken")
            if not token:
                return
            query = {**query, "pageToken": str(token)}
        raise CloudUnavailableError(f"{_SOURCE}: the list has no end")


def _row_of(prices: PriceList, region: str, name: str, kind: CapacityType) -> PriceRow | None:
    """Returns the price of a type; None when it is not known or a part of it is not priced here."""
    spec = machine_specs().get(("gcp", name))
    if spec is not None:
        found = prices.machine(spec)
    elif name.startswith("tpu-"):
        tpu, chips = tpu_slice(name)
        found = prices.tpu(tpu.accelerator, chips)
    else:
        return None
    if found is None:
        return None
    return PriceRow(
        cloud="gcp",
        region=region,
        zone="",
        instance_type=name,
        capacity_type=kind,
        currency=_CURRENCY,
        price_per_hour=found[0].quantize(_EXACT),
        priced_at=found[1],
        source=_SOURCE,
    )
