"""The published lists, with the right values known beforehand (facts on real inputs, items 1 to 6)."""

from decimal import Decimal

import pytest
from tests.catalog.published import catalog, cheapest, listed, needs_lists, offers

from hostler.catalog.offerings import Catalog, load_catalog
from hostler.model.enums import CapacityType

pytestmark = needs_lists

GOOGLE = ("skypilot_schema_gcp", "gcp_karpenter")
ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


@pytest.mark.parametrize(
    ("instance_type", "price", "second"),
    [
        ("a2-highgpu-1g", "3.6734", "3.673385"),
        ("a2-highgpu-8g", "29.3871", "29.38708"),
        ("g2-standard-4", "0.7068", "0.706832"),
        ("g2-standard-96", "8.0033", "8.003330"),
    ],
)
def test_google_when_host_and_accelerator_are_priced_apart_then_summed(instance_type, price, second):
    found = offers(catalog(GOOGLE[0]), instance_type=instance_type, region="us-central1", capacity_type=ON_DEMAND)
    assert found
    assert all(round(item.price_usd_per_hour, 4) == Decimal(price) for item in found)
    whole = offers(catalog(GOOGLE[1]), instance_type=instance_type, region="us-central1", capacity_type=ON_DEMAND)
    assert [round(item.price_usd_per_hour, 6) for item in whole] == [Decimal(second)]


def test_google_when_host_is_not_in_the_list_then_accelerator_alone_has_no_price():
    found = offers(catalog(GOOGLE[0]), accelerator="T4")
    assert found
    assert {item.price_usd_per_hour for item in found} == {None}


@pytest.mark.parametrize(
    ("instance_type", "region", "one", "other"),
    [
        ("a2-highgpu-1g", "europe-west4", "2.427", "3.747"),
        ("a3-highgpu-8g", "us-central1", "43.066", "88.4899"),
    ],
)
def test_google_when_two_sources_disagree_then_every_zone_is_doubted(instance_type, region, one, other):
    found = offers(catalog(*GOOGLE), instance_type=instance_type, region=region, capacity_type=ON_DEMAND)
    assert found
    assert all(item.zone for item in found)
    for item in found:
        words = " ".join(item.doubts)
        assert "sources disagree" in words
        assert one in words
        assert other in words


def test_google_when_two_sources_agree_then_no_doubt():
    found = offers(catalog(*GOOGLE), instance_type="a3-highgpu-8g", region="europe-west4", capacity_type=ON_DEMAND)
    assert found
    assert {item.doubts for item in found} == {()}
    assert {round(item.price_usd_per_hour, 1) for item in found} == {Decimal("111.8")}


def test_google_when_only_one_source_is_read_then_no_disagreement():
    assert not [item for item in catalog(GOOGLE[1]).offerings if item.doubts]


def test_google_when_slice_price_is_a_stand_in_then_none():
    found = offers(catalog(GOOGLE[0]), instance_type="tpu-v6e-1", region="southamerica-west1", zone="southamerica-west1-a")
    assert {item.capacity_type: item.price_usd_per_hour for item in found} == {ON_DEMAND: Decimal("2.7"), SPOT: None}


@pytest.mark.parametrize(
    ("slice_name", "accelerator", "chips", "price"),
    [("tpu-v5litepod-8", "TPU-v5e", 8, "9.6"), ("tpu-v5p-8", "TPU-v5p", 4, None), ("tpu-v2-8", "TPU-v2", 4, "4.5")],
)
def test_google_when_slice_is_named_by_cores_then_counted_in_chips(slice_name, accelerator, chips, price):
    found = offers(catalog(GOOGLE[0]), instance_type=slice_name, capacity_type=ON_DEMAND)
    assert {(item.accelerator, item.accelerator_count, item.interconnect) for item in found} == {(accelerator, chips, "ICI")}
    if price:
        assert {item.price_usd_per_hour for item in found if item.region == "us-central1"} == {Decimal(price)}


def test_all_when_price_is_zero_or_missing_then_none_and_never_below():
    every = catalog()
    assert {item.price_usd_per_hour for item in offers(every, cloud="vast", capacity_type=SPOT)} == {None}
    assert len(offers(every, cloud="vast", capacity_type=SPOT)) == 64
    free = [item for item in every.offerings if item.price_usd_per_hour is not None and item.price_usd_per_hour <= 0]
    assert free == []


def test_alibaba_when_price_is_zero_then_none():
    found = offers(catalog("alibaba"), instance_type="ecs.gn6v-c8g1.4xlarge", capacity_type=ON_DEMAND)
    assert {item.price_usd_per_hour for item in found} == {None}
    assert {item.region for item in found} == {"cn-beijing", "cn-zhangjiakou"}


def test_aws_when_type_has_no_price_then_there_but_not_for_sale():
    gone = [item for item in catalog("aws_gpu").offerings if item.price_usd_per_hour is None and not item.region]
    assert {item.instance_type for item in gone if item.accelerator not in {"VU9P", "VU47P", "U250"}} == {
        "dl2q.24xlarge",
        "p5e.48xlarge",
        "trn2.48xlarge",
    }
    assert not any(item.is_available for item in gone)


def test_all_when_in_yuan_then_converted_and_the_price_of_the_source_kept():
    every = catalog()
    (beijing,) = offers(every, instance_type="g5.xlarge", region="cn-north-1")
    assert (beijing.currency, beijing.price_in_currency_per_hour) == ("CNY", Decimal("9.51389"))
    assert Decimal("1.2") < beijing.price_usd_per_hour < Decimal("1.5")
    (virginia,) = offers(every, instance_type="g5.xlarge", region="us-east-1")
    assert (virginia.currency, virginia.price_usd_per_hour) == ("USD", Decimal("1.006"))
    for item in offers(every, instance_type="ecs.gn6i-c4g1.xlarge", capacity_type=ON_DEMAND):
        assert item.currency == "CNY"
        assert Decimal("1.0") < item.price_usd_per_hour < Decimal(3)


@pytest.mark.parametrize(
    ("accelerator", "kind", "instance_type", "region", "price"),
    [
        ("H100", ON_DEMAND, "Standard_NC40ads_H100_v5", "eastus", "6.98"),
        ("A100-80GB", ON_DEMAND, "Standard_NC24ads_A100_v4", "eastus", "3.673"),
        ("T4", ON_DEMAND, "Standard_NC4as_T4_v3", "eastus", "0.526"),
        ("H100", SPOT, "Standard_NCC40ads_H100_v5", "eastus2", "1.2899"),
        ("A100-80GB", SPOT, "Standard_NC24ads_A100_v4", "eastus", "0.7467"),
        ("T4", SPOT, None, "australiacentral2", "0.0684"),
    ],
)
def test_azure_when_cheapest_per_accelerator_then_known_one(accelerator, kind, instance_type, region, price):
    best = cheapest(catalog("azure"), per_accelerator=True, accelerator=accelerator, capacity_type=kind)
    assert round(best.price_usd_per_hour / best.accelerator_count, len(price.partition(".")[2])) == Decimal(price)
    assert instance_type is None or best.instance_type == instance_type
    same = offers(catalog("azure"), instance_type=best.instance_type, capacity_type=kind)
    assert region in {item.region for item in same if item.price_usd_per_hour == best.price_usd_per_hour}


def test_azure_when_row_has_no_spot_price_then_none():
    missing = [
        item
        for item in offers(catalog("azure"), cloud="azure", capacity_type=SPOT)
        if item.accelerator in {"H100", "A100-80GB", "V100"} and item.price_usd_per_hour is None
    ]
    assert missing
    assert all(item.region for item in missing)


@pytest.mark.parametrize(
    ("instance_type", "price"),
    [
        ("g4dn.xlarge", "0.526"),
        ("g5.xlarge", "1.006"),
        ("g6.xlarge", "0.8048"),
        ("p4d.24xlarge", "21.957642"),
        ("p5.48xlarge", "55.04"),
        ("p6-b200.48xlarge", "113.9328"),
    ],
)
def test_aws_when_in_virginia_then_known_price(instance_type, price):
    (item,) = offers(catalog("aws_gpu"), instance_type=instance_type, region="us-east-1")
    assert item.price_usd_per_hour == Decimal(price)


def test_aws_when_p5_then_its_size():
    (item,) = offers(catalog("aws_gpu"), instance_type="p5.48xlarge", region="us-east-1")
    assert (item.vcpu_count, item.accelerator_count, item.nic_count, item.interconnect) == (192, 8, 32, "EFA")
    assert [(use.code, use.unit, use.amount) for use in item.quotas] == [("L-417A185B", "vCPU", 192)]


def test_quota_codes_when_table_contradicts_the_family_then_remarked_and_not_followed():
    remarks = catalog("aws_quota").remarks
    assert len(remarks) == 2
    assert all("p3.2xlarge" in remark and "not under" in remark for remark in remarks)
    assert "L-417A185B" in remarks[0]


def test_all_when_read_then_complete_without_faults():
    every = catalog()
    assert every.faults == ()
    assert len(every.offerings) > 8000
    assert len({item.key for item in every.offerings}) == len(every.offerings)
    assert {item.cloud for item in every.offerings} == {"alibaba", "aws", "azure", "gcp", "vast"}
    assert str(every.loaded_at_source["skypilot_schema_azure_gpu_2026-05-20.csv.gz"]) == "2026-05-20 00:00:00+00:00"


def test_all_when_priced_then_every_offering_names_its_row_and_its_quota():
    for item in catalog().offerings:
        assert item.price_source or not item.region
        assert item.quotas or item.cloud in {"vast", "aws"}


def test_all_when_packed_then_unpacked_equal_and_in_part():
    every = catalog()
    data = every.to_bytes()
    again = Catalog.from_bytes(data)
    assert again.offerings == every.offerings
    assert again.to_bytes() == data
    part = Catalog.from_bytes(data, {"H100", "A100"})
    assert part.offerings == tuple(item for item in every.offerings if item.accelerator in {"H100", "A100"})


def test_all_when_files_are_given_in_another_order_then_same_prices():
    other = load_catalog(reversed(listed("")))
    prices = {item.key: (item.price_usd_per_hour, len(item.doubts)) for item in catalog().offerings}
    assert {item.key: (item.price_usd_per_hour, len(item.doubts)) for item in other.offerings} == prices
