from decimal import Decimal

import pytest

from hostler.catalog.disks import USD_PER_GIB_MONTH, disk_usd_per_gib_hour
from hostler.catalog.egress import EGRESS, continent_of, egress_usd_per_gib


@pytest.mark.parametrize(
    ("source", "cloud", "region", "price"),
    [
        ("", "aws", "us-east-1", "0"),
        ("aws/us-east-1", "aws", "us-east-1", "0"),
        ("aws/us-east-1", "aws", "us-west-2", "0.02"),
        ("aws/us-east-1", "gcp", "us-central1", "0.09"),
        ("aws/sa-east-1", "gcp", "us-central1", "0.15"),
        ("gcp/us-central1", "gcp", "us-east4", "0.02"),
        ("gcp/us-central1", "gcp", "asia-east1", "0.08"),
        ("gcp/us-central1", "aws", "us-east-1", "0.12"),
        ("gcp", "gcp", "us-east4", "0.08"),
        ("azure/eastus", "azure", "westeurope", "0.05"),
        ("azure/eastus", "azure", "westus2", "0.02"),
        ("azure/brazilsouth", "aws", "us-east-1", "0.181"),
        ("alibaba/cn-beijing", "alibaba", "us-east-1", "0.123"),
        ("nowhere/x", "aws", "us-east-1", "0.12"),
        ("nowhere/x", "nowhere", "y", "0.08"),
    ],
)
def test_egress_when_data_moves_then_the_price_of_that_way(source, cloud, region, price):
    assert egress_usd_per_gib(source, cloud, region)[0] == Decimal(price)


def test_egress_when_the_cloud_is_not_known_then_the_dearest_counts_and_it_says_so():
    price, words = egress_usd_per_gib("nowhere", "aws", "us-east-1")
    assert price >= max(EGRESS[cloud].internet for cloud in ("aws", "gcp", "azure"))
    assert "not in the table" in words


@pytest.mark.parametrize(
    ("region", "continent"),
    [
        ("us-east-1", "america"),
        ("ap-southeast-2", "oceania"),
        ("ap-southeast-1", "asia"),
        ("southamerica-east1", "south-america"),
        ("southcentralus", "america"),
        ("southindia", "asia"),
        ("northeurope", "europe"),
        ("me-central1", "middle-east"),
        ("mars-1", ""),
    ],
)
def test_continent_when_asked_then_by_the_longest_beginning(region, continent):
    assert continent_of(region) == continent


def test_disk_when_the_cloud_is_not_known_then_the_dearest():
    assert disk_usd_per_gib_hour("nowhere") == max(USD_PER_GIB_MONTH.values()) / 730
