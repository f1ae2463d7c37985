"""What moving data out of a cloud costs, by cloud. List prices of the first paid tier, in USD for a GiB (sold as GB).

Sources, each the cloud's own price page: aws.amazon.com/ec2/pricing/on-demand (data transfer), cloud.google.com/vpc/network-pricing
(premium tier), azure.microsoft.com/pricing/details/bandwidth, alibabacloud.com/help (Internet data transfers). Tiers above the
first and monthly free amounts are left out: they make moving cheaper, never dearer. Refresh by editing the rows and ``AS_OF``.

Checked on ``AS_OF`` against public copies of these pages: Amazon's 0.09, 0.114 (Sydney) and 0.02, Google's 0.12. Google tells 0.19 for
traffic that ends in Australia; that it also holds for what starts there is a cautious reading. The other rows were written down
without such a check and may be out of date.
"""

from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

AS_OF: Final = "2026-12-01"
"""Day of the table; what was checked on it is told above."""


class EgressPrice(NamedTuple):
    """Prices of one cloud, USD for a GiB that leaves.

    Attributes:
        internet: to another cloud or to one's own place. region: to another region of the same cloud on the same continent.
        continent: to a region of the same cloud on another continent.
    """

    internet: Decimal
    region: Decimal
    continent: Decimal


_DEAREST: Final = EgressPrice(internet=Decimal("0.12"), region=Decimal("0.02"), continent=Decimal("0.08"))

EGRESS: Final[dict[str, EgressPrice]] = {
    "aws": EgressPrice(internet=Decimal("0.09"), region=Decimal("0.02"), continent=Decimal("0.02")),
    "gcp": EgressPrice(internet=Decimal("0.12"), region=Decimal("0.02"), continent=Decimal("0.08")),
    "azure": EgressPrice(internet=Decimal("0.087"), region=Decimal("0.02"), continent=Decimal("0.05")),
    "alibaba": EgressPrice(internet=Decimal("0.123"), region=Decimal("0.123"), continent=Decimal("0.123")),
}
"""Cloud -> its prices from its cheapest regions. Alibaba sells traffic between regions as Internet traffic unless a bandwidth
package is bought; the price is that of its regions in China (Singapore 0.117, USA 0.078).
"""

DEARER_INTERNET: Final[dict[str, Decimal]] = {
    "aws/ap-northeast": Decimal("0.114"),
    "aws/ap-northeast-2": Decimal("0.126"),
    "aws/ap-south-": Decimal("0.1093"),
    "aws/ap-southeast": Decimal("0.12"),
    "aws/ap-southeast-2": Decimal("0.114"),
    "aws/sa-": Decimal("0.15"),
    "aws/af-": Decimal("0.154"),
    "azure/brazil": Decimal("0.181"),
    "azure/australia": Decimal("0.12"),
    "azure/japan": Decimal("0.12"),
    "azure/korea": Decimal("0.12"),
    "azure/southeastasia": Decimal("0.12"),
    "azure/eastasia": Decimal("0.12"),
    "azure/centralindia": Decimal("0.12"),
    "azure/southindia": Decimal("0.12"),
    "gcp/australia": Decimal("0.19"),
}
"""``cloud/beginning of a region`` -> Internet price where it is above the cloud's own; the longest beginning counts."""

_CONTINENTS: Final = {
    "america": ("us", "ca-", "northamerica", "eastus", "westus", "centralus", "northcentralus", "southcentralus", "westcentralus",
                "canada", "mx-", "mexico", "na-"),
    "south-america": ("sa-", "southamerica", "brazil", "chile"),
    "europe": ("eu", "europe", "northeurope", "westeurope", "uk", "france", "germany", "norway", "sweden", "switzerland", "italy",
               "poland", "spain", "austria"),
    "asia": ("ap-", "asia", "japan", "korea", "eastasia", "southeastasia", "centralindia", "southindia", "westindia", "cn-",
             "indonesia", "malaysia"),
    "oceania": ("australia", "newzealand", "ap-southeast-2", "ap-southeast-4"),
    "middle-east": ("me-", "uae", "qatar", "israel", "il-"),
    "africa": ("af-", "africa", "southafrica"),
}  # fmt: skip
"""Beginnings of region names; the longest that fits counts."""


def continent_of(region: str) -> str:
    """Returns the continent of a region; empty when its name tells none."""
    fits = [(len(start), name) for name, starts in _CONTINENTS.items() for start in starts if region.startswith(start)]
    return max(fits)[1] if fits else ""


@lru_cache(maxsize=4096)
def egress_usd_per_gib(source: str, target_cloud: str, target_region: str) -> tuple[Decimal, str]:
    """Returns what a GiB costs from ``source`` to a region, and in words which price that is.

    Args:
        source: ``cloud`` or ``cloud/region``; empty when the data lies in no cloud, which costs nothing to leave. A cloud that
            the table does not have counts as the dearest of it.
    """
    if not source:
        return Decimal(0), "the data lies in no cloud: bringing it in is free"
    cloud, _, region = source.partition("/")
    price, word = EGRESS.get(cloud, _DEAREST), "" if cloud in EGRESS else f", {cloud} is not in the table: the dearest counts"
    if cloud != target_cloud:
        return _internet(cloud, region, price), f"Internet, {cloud} to {target_cloud}{word}"
    if region == target_region:
        return Decimal(0), "same region"
    if region and continent_of(region) == continent_of(target_region) != "":
        return price.region, f"between regions of {cloud}{word}"
    return price.continent, f"between continents of {cloud}{word}"


def _internet(cloud: str, region: str, price: EgressPrice) -> Decimal:
    place = f"{cloud}/{region}"
    fits = [(len(start), amount) for start, amount in DEARER_INTERNET.items() if place.startswith(start)]
    return max(fits)[1] if fits else price.internet
