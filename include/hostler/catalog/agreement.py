"""Where sources meet: one offering a key, and a doubt where they disagree."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

MOST_APART: Final = Decimal("0.20")
"""Prices of one offering that are further apart than this part of the lower one are doubted. Source: facts on two published price
lists of Google, where 20 % parts rounding from errors.
"""

_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)

_Key = tuple[str, str, str, str, CapacityType]


def agreed(offerings: Iterable[Offering]) -> tuple[Offering, ...]:
    """Returns one offering a key, in the order in which keys first came.

    Of several the newest counts, then one with a price, then the dearest. A price for a whole region checks those of its
    zones, and stands in where they have none; where the zones are known it is no offering of its own.
    """
    by_key: dict[_Key, Offering] = {}
    rivals: dict[_Key, list[Offering]] = {}
    for item in offerings:
        key = (item.cloud, item.region, item.zone, item.instance_type, item.capacity_type)
        first = by_key.setdefault(key, item)
        if first is not item:
            rivals.setdefault(key, [first]).append(item)
    for key, several in rivals.items():
        by_key[key] = _chosen(several)
    return tuple(_zones_checked(by_key))


def disagreement(first: Offering, second: Offering) -> str | None:
    """Returns in words how far two prices of one thing are apart; None when they agree or one is missing."""
    one, other = first.price_usd_per_hour, second.price_usd_per_hour
    if one is None or other is None:
        return None
    low, high = sorted((one, other))
    if high - low <= low * MOST_APART:
        return None
    apart = (high - low) / low * 100
    return f"sources disagree by {apart:.0f} %: {one} USD ({first.price_source}) and {other} USD ({second.price_source})"


def _chosen(several: Sequence[Offering]) -> Offering:
    """Returns the one that counts, with what the others say against it."""
    best = max(several, key=_worth)
    return _doubted(best, (disagreement(best, other) for other in several if other is not best))


def _worth(item: Offering) -> tuple[bool, datetime, Decimal]:
    price = item.price_usd_per_hour
    return (price is not None, item.priced_at or _NEVER, price or Decimal(0))


def _zones_checked(by_key: dict[_Key, Offering]) -> list[Offering]:
    """Returns the offerings, with those of whole regions folded into their zones'."""
    zoned_clouds = {item.cloud for key, item in by_key.items() if key[2]}
    regional = {key: item for key, item in by_key.items() if not key[2] and key[0] in zoned_clouds}
    if not regional:
        return list(by_key.values())
    checked_clouds = {key[0] for key in regional}
    folded: set[_Key] = set()
    for key, item in by_key.items():
        if not key[2] or key[0] not in checked_clouds:
            continue
        wide = (key[0], key[1], "", key[3], key[4])
        if (whole := regional.get(wide)) is not None:
            folded.add(wide)
            by_key[key] = _checked(item, whole)
    return [item for key, item in by_key.items() if key not in folded]


def _checked(item: Offering, whole: Offering) -> Offering:
    """Returns a zone's offering, checked by the price of its region."""
    if item.price_usd_per_hour is None and whole.price_usd_per_hour is not None:
        return replace(
            item,
            price_usd_per_hour=whole.price_usd_per_hour,
            currency=whole.currency,
            price_in_currency_per_hour=whole.price_in_currency_per_hour,
            price_source=whole.price_source,
            priced_at=whole.priced_at,
            doubts=whole.doubts,
        )
    return _doubted(item, (disagreement(item, whole),))


def _doubted(item: Offering, words: Iterable[str | None]) -> Offering:
    found = tuple(dict.fromkeys(word for word in words if word is not None))
    return replace(item, doubts=(*item.doubts, *found)) if found else item
