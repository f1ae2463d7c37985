"""What a batch is compared with."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from hostler.catalog.errors import CatalogError
from hostler.catalog.offerings import load_catalog
from hostler.catalog.price_batch import PriceBatch, apart
from hostler.catalog.prices import PriceRow, keep, priced, read_kept, text_of_rows, with_known_prices
from hostler.catalog.rates import shipped_rates
from hostler.model.enums import CapacityType

NOW = datetime(2026, 12, 1, tzinfo=UTC)
ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


def row(**changes):
    plain = {
        "cloud": "aws",
        "region": "us-east-1",
        "zone": "",
        "instance_type": "g5.xlarge",
        "capacity_type": ON_DEMAND,
        "currency": "USD",
        "price_per_hour": Decimal("1.006"),
        "priced_at": NOW,
        "source": "AWS Price List",
    }
    return PriceRow(**{**plain, **changes})


def batch(*rows, last=(), lists=None):
    return PriceBatch(
        cloud="aws",
        rows=rows,
        wanted={"us-east-1": ("g5.xlarge",)},
        last=last,
        lists=lists or {},
        accelerator_counts={"g5.xlarge": 1, "g5.48xlarge": 8},
        rates=shipped_rates(),
    )


def shipped(**wanted):
    found = [item for item in load_catalog().offerings if all(getattr(item, name) == value for name, value in wanted.items())]
    assert found
    return found[0]


def test_table_when_price_moved_then_by_how_much_of_the_lower():
    table = batch(row(price_per_hour=Decimal("1.5")), last=(row(price_per_hour=Decimal(1)),)).table()
    assert table["on_demand_jump"] == [0.5]
    assert table["spot_jump"] == [None]
    assert batch(row(price_per_hour=Decimal(1)), last=(row(price_per_hour=Decimal("1.5")),)).table()["on_demand_jump"] == [0.5]


def test_table_when_new_or_in_another_currency_then_no_jump():
    assert batch(row()).table()["on_demand_jump"] == [None]
    assert batch(row(), last=(row(currency="CNY"),)).table()["on_demand_jump"] == [None]


def test_table_when_machine_has_eight_then_usd_is_of_one():
    table = batch(row(instance_type="g5.48xlarge", price_per_hour=Decimal("16.288"))).table()
    assert table["usd_per_accelerator_hour"] == [2.036]
    table = batch(row(instance_type="unheard.of")).table()
    assert table["usd_per_accelerator_hour"] == [None]


@pytest.mark.parametrize(("region", "currency"), [("us-east-1", "USD"), ("cn-north-1", "CNY")])
def test_table_when_region_sells_in_a_currency_then_expected(region, currency):
    assert batch(row(region=region)).table()["expected_currency"] == [currency]


def test_doubts_when_second_source_is_over_a_fifth_away_then_in_words():
    listed = shipped(instance_type="g5.xlarge", region="us-east-1")
    lists = {("aws", "us-east-1", "g5.xlarge"): listed}
    assert batch(row(), lists=lists).with_doubts() == (row(),)
    (far,) = batch(row(price_per_hour=Decimal(2)), lists=lists).with_doubts()
    assert "sources disagree by 99 %" in far.doubts[0]
    assert "aws_2026-07-20.csv" in far.doubts[0]
    assert batch(row(price_per_hour=Decimal(2), capacity_type=SPOT), lists=lists).table()["gap_to_second_source"] == [None]


def test_apart_when_a_price_is_not_above_zero_then_none():
    assert apart(Decimal(0), Decimal(1)) is None
    assert apart(Decimal(-1), Decimal(1)) is None


def test_kept_when_read_again_then_the_same_rows_and_nothing_else_is_left(tmp_path):
    rows = (row(), row(zone="us-east-1a", capacity_type=SPOT, doubts=("one, with a comma", 'two "quoted"')))
    path = tmp_path / "accepted" / "aws.csv"
    keep(path, rows)
    assert set(read_kept(path)) == set(rows)
    assert text_of_rows(reversed(rows)) == path.read_text()
    assert [item.name for item in path.parent.iterdir()] == ["aws.csv"]
    assert read_kept(tmp_path / "other.csv") == ()


@pytest.mark.parametrize(
    ("old", "new"), [("1.006", "-1"), ("1.006", "0"), ("on-demand", "stolen"), ("USD", "usd"), ("2026-12-01", "soon")]
)
def test_kept_when_damaged_then_line_is_named(tmp_path, old, new):
    path = tmp_path / "aws.csv"
    path.write_text(text_of_rows([row()]).replace(old, new))
    with pytest.raises(CatalogError, match=r"^aws\.csv, line 2: "):
        read_kept(path)


def test_catalog_when_prices_are_accepted_then_they_take_the_place_of_the_lists(tmp_path):
    spot = row(zone="us-east-1a", capacity_type=SPOT, price_per_hour=Decimal("0.4"), source="EC2 spot price history")
    west = row(region="us-west-2", price_per_hour=Decimal("1.1"))
    keep(tmp_path / "aws.csv", [row(price_per_hour=Decimal(2), doubts=("odd",)), spot, west, row(instance_type="x.y")])
    from hostler.catalog.offerings import shipped_paths

    catalog = load_catalog([*shipped_paths(), tmp_path / "aws.csv"])
    found = {
        (item.region, item.zone, item.capacity_type): item for item in catalog.offerings if item.instance_type == "g5.xlarge"
    }
    here = found["us-east-1", "", ON_DEMAND]
    assert (here.price_usd_per_hour, here.doubts, here.price_source) == (Decimal(2), ("odd",), "AWS Price List")
    assert found["us-west-2", "", ON_DEMAND].price_usd_per_hour == Decimal("1.1")
    cheap = found["us-east-1", "us-east-1a", SPOT]
    assert (cheap.price_usd_per_hour, cheap.accelerator, cheap.vcpu_count) == (Decimal("0.4"), "A10G", 4)
    assert [use.code for use in cheap.quotas] == ["L-3819A6DF"]
    assert found["cn-north-1", "", ON_DEMAND].price_usd_per_hour < Decimal("1.5")
    assert any("x.y" in remark for remark in catalog.remarks)


def test_priced_when_region_wide_then_each_zone_without_its_own():
    base = shipped(instance_type="g5.xlarge", region="us-east-1")
    zones = tuple(replace(base, zone=f"us-east-1{letter}") for letter in "ab")
    rows = [row(price_per_hour=Decimal(3)), row(zone="us-east-1b", price_per_hour=Decimal(4))]
    found, remarks = priced(zones, rows, shipped_rates())
    assert {item.zone: item.price_usd_per_hour for item in found} == {"us-east-1a": Decimal(3), "us-east-1b": Decimal(4)}
    assert remarks == ()


def test_listed_by_driver_when_prices_are_accepted_then_on_demand_filled_and_live_spot_kept():
    base = shipped(instance_type="g5.xlarge", region="us-east-1")
    rows = {
        item.key: item
        for item in (
            row(region="us-west-2", price_per_hour=Decimal("1.1")),
            row(capacity_type=SPOT, price_per_hour=Decimal("0.1")),
        )
    }
    unpriced = replace(base, region="us-west-2", zone="us-west-2a", price_usd_per_hour=None)
    live = replace(base, capacity_type=SPOT, zone="us-east-1a", price_usd_per_hour=Decimal("0.5"))
    blind = replace(live, price_usd_per_hour=None)
    reserved = replace(unpriced, capacity_type=CapacityType.RESERVED)
    found = with_known_prices((unpriced, live, blind, reserved), rows, shipped_rates())
    assert [item.price_usd_per_hour for item in found] == [Decimal("1.1"), Decimal("0.5"), Decimal("0.1"), Decimal("1.1")]


def test_listed_when_currency_has_no_rate_then_no_price_and_a_doubt():
    base = shipped(instance_type="g5.xlarge", region="us-east-1")
    rows = {item.key: item for item in (row(currency="XYZ"),)}
    (found,) = with_known_prices((base,), rows, {})
    assert found.price_usd_per_hour is None
    assert found.doubts == ("no conversion rate for XYZ is known",)
