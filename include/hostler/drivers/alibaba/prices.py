"""Alibaba Cloud's own prices: DescribePrice for pay-as-you-go, DescribeSpotPriceHistory for spot."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from hostler.catalog.prices import PriceRow
from hostler.cloud.errors import CloudAuthError, CloudConfigError
from hostler.drivers.alibaba.rpc import Rpc
from hostler.model.enums import CapacityType

_SOURCE: Final = "Alibaba DescribePrice"
_SPOT_SOURCE: Final = "Alibaba DescribeSpotPriceHistory"
_HISTORY: Final = timedelta(hours=24)
_DISK: Final = "cloud_essd"
_MOST_PAGES: Final = 100

_NOT_SOLD: Final = (
    "InvalidInstanceType",
    "InvalidParameter.InstanceType",
    "InvalidSystemDiskCategory",
    "PriceNotFound",
    "PricePlanResultNotFound",
    "RegionUnauthorized",
)
"""Beginnings of codes that mean: this type has no price here. Source: alibabacloud.com/help/ecs/developer-reference, DescribePrice."""


class AlibabaPrices:
    """A ``catalog.prices.PriceSource``. The currency is the account's own, and each answer names it.

    Args:
        access_key: ``id:secret``. nonce: see ``Rpc``.
    """

    def __init__(
        self, *, access_key: str, endpoint_url: str | None = None, nonce: Callable[[], str] = lambda: uuid.uuid4().hex
    ) -> None:
        key_id, _, key_secret = access_key.partition(":")
        if not key_id or not key_secret:
            raise CloudConfigError("the Alibaba access key must be of the form id:secret")
        self._rpc = Rpc(key_id=key_id, key_secret=key_secret, nonce=nonce, endpoint_url=endpoint_url)

    def fetch(self, wanted: Mapping[str, Sequence[str]], now: datetime) -> tuple[PriceRow, ...]:
        """See the port. Two calls and more a type and region."""
        rows: list[PriceRow] = []
        for region, types in wanted.items():
            for name in types:
                row = self._on_demand(region, name, now)
                if row is not None:
                    rows.append(row)
                    rows += self._spot(region, name, row.currency, now)
        return tuple(rows)

    def _on_demand(self, region: str, name: str, now: datetime) -> PriceRow | None:
        """Returns the price of the machine itself, without its disk; None when it is not sold here."""
        answer = self._asked(
            region,
            "DescribePrice",
            now,
            ResourceType="instance",
            InstanceType=name,
            PriceUnit="Hour",
            **{"SystemDisk.Category": _DISK, "SystemDisk.Size": "40"},
        )
        whole = (answer or {}).get("PriceInfo", {}).get("Price", {})
        parts = whole.get("DetailInfos", {}).get("DetailInfo") or ()
        machine = next((part for part in parts if part.get("Resource") == "instanceType"), None)
        # Without its parts the price holds the disk too, which is not the machine's.
        amount = _amount((machine or {}).get("TradePrice")) or _amount((machine or {}).get("OriginalPrice"))
        if amount is None:
            return None
        return PriceRow(
            cloud="alibaba",
            region=region,
            zone="",
            instance_type=name,
            capacity_type=CapacityType.ON_DEMAND,
            currency=str(whole.get("Currency", "")),
            price_per_hour=amount,
            priced_at=now,
            source=_SOURCE,
        )

    def _spot(self, region: str, name: str, currency: str, now: datetime) -> Iterator[PriceRow]:
        """Yields the newest spot price of each zone."""
        newest: dict[str, tuple[datetime, Decimal]] = {}
        for item in self._history(region, name, now):
            at, amount = _time(item.get("Timestamp")), _amount(item.get("SpotPrice"))
            zone = str(item.get("ZoneId", ""))
            if at is not None and amount is not None and (zone not in newest or at > newest[zone][0]):
                newest[zone] = (at, amount)
        for zone, (at, amount) in sorted(newest.items()):
            yield PriceRow(
                cloud="alibaba",
                region=region,
                zone=zone,
                instance_type=name,
                capacity_type=CapacityType.SPOT,
                currency=currency,
                price_per_hour=amount,
                priced_at=at,
                source=_SPOT_SOURCE,
            )

    def _history(self, region: str, name: str, now: datetime) -> Iterator[Mapping[str, Any]]:
        offset = 0
        for _ in range(_MOST_PAGES):
            answer = self._asked(
                region,
                "DescribeSpotPriceHistory",
                now,
                InstanceType=name,
                NetworkType="vpc",
                OSType="linux",
                StartTime=(now - _HISTORY).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                EndTime=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                Offset=str(offset),
            )
            yield from (answer or {}).get("SpotPrices", {}).get("SpotPriceType") or ()
            following = int((answer or {}).get("NextOffset") or 0)
            if following <= offset:
                return
            offset = following

    def _asked(self, region: str, action: str, now: datetime, **arguments: str) -> dict[str, Any] | None:
        """Returns the answer; None when the type is not sold in the region."""
        try:
            return self._rpc.call(region, action, now, **arguments)
        except (CloudConfigError, CloudAuthError) as error:
            if any(f'"{code}' in str(error) for code in _NOT_SOLD):
                return None
            raise


def _amount(value: object) -> Decimal | None:
    """Returns a price; None for none and for zero."""
    try:
        found = Decimal(str(value))
    except ArithmeticError:
        return None
    return found if found.is_finite() and found != 0 else None


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
