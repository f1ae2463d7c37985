from decimal import Decimal

import pytest

from hostler.catalog.storage import address_usd_per_month, volume_usd_per_month


@pytest.mark.parametrize(
    ("kind", "more", "usd"),
    [
        ("gp3", {}, "16"),
        ("gp3", {"iops": 3000, "mibps": 125}, "16"),
        ("gp3", {"iops": 16_000, "mibps": 1000}, "116"),
        ("gp2", {"iops": 600}, "20"),
        ("io1", {"iops": 1000}, "90"),
        ("sc1", {}, "3"),
    ],
)
def test_volume_when_priced_then_size_and_what_is_above_the_free_part(kind, more, usd):
    assert volume_usd_per_month("aws", "us-east-1", kind, size_gib=200, **more) == Decimal(usd)


def test_volume_when_kind_or_region_is_unknown_then_no_price_and_never_0():
    assert volume_usd_per_month("aws", "us-east-1", "io9", size_gib=1) is None
    assert volume_usd_per_month("aws", "mars-1", "gp3", size_gib=1) is None
    assert address_usd_per_month("none", "x") is None


def test_address_when_priced_then_730_hours():
    assert address_usd_per_month("aws", "anywhere") == Decimal("3.65")
