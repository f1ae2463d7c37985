"""What a network disk costs, by cloud: the general SSD that each takes for boot and data, USD for a GiB and month.

Sources, each the cloud's own price page: aws.amazon.com/ebs/pricing (gp3, us-east-1), cloud.google.com/compute/disks-image-pricing
(pd-balanced, us-central1), azure.microsoft.com/pricing/details/managed-disks (Standard SSD E-series, per GiB of a 1 TiB disk, East
US), alibabacloud.com/product/disk (ESSD PL1, Singapore). Extra IOPS and throughput are not in it. Written down without a check
against these pages: they are of the right size, and may be out of date.
"""

from decimal import Decimal
from typing import Final

AS_OF: Final = "2026-12-01"
"""Day of the table, not of a check."""

HOURS_PER_MONTH: Final = Decimal(730)
"""What the clouds' own calculators take."""

USD_PER_GIB_MONTH: Final[dict[str, Decimal]] = {
    "aws": Decimal("0.08"),
    "gcp": Decimal("0.10"),
    "azure": Decimal("0.075"),
    "alibaba": Decimal("0.12"),
}


def disk_usd_per_gib_hour(cloud: str) -> Decimal:
    """Returns the price of a GiB for an hour; the dearest of the table for a cloud that is not in it."""
    return USD_PER_GIB_MONTH.get(cloud, max(USD_PER_GIB_MONTH.values())) / HOURS_PER_MONTH
