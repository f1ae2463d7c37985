"""Google's billing catalog."""

from decimal import Decimal

import pytest
from tests.clouds.price_apis import AT, KEY

from hostler.cloud.errors import CloudAuthError
from hostler.drivers.gcp.prices import GooglePrices
from hostler.model.enums import CapacityType


def sell_a2(apis, **options):
    prefix = "Spot Preemptible " if options.get("usage") == "Preemptible" else ""
    apis.sell_google(f"{prefix}A2 Instance Core running in Americas", "0.031611", group="CPU", **options)
    apis.sell_google(f"{prefix}A2 Instance Ram running in Americas", "0.004237", group="RAM", unit="GiBy.h", **options)
    apis.sell_google(f"{prefix}Nvidia Tesla A100 GPU running in Americas", "2.933908", group="GPU", **options)


@pytest.fixture
def prices(apis):
    return GooglePrices(api_key=KEY, endpoint_url=apis.url, timeout_s=10)


def test_fetch_when_sold_in_parts_then_cores_memory_and_accelerators_summed(apis, prices):
    sell_a2(apis)
    apis.sell_google("Commitment v1: A2 Instance Core for 1 year", "0.001", group="CPU")
    apis.sell_google("A2 Custom Instance Core", "0.001", group="CPU")
    apis.sell_google("Nvidia Tesla A100 80GB GPU running in Americas", "9.9", group="GPU")
    (row,) = prices.fetch({"us-central1": ("a2-highgpu-1g", "a2-highgpu-99g")}, AT)
    assert round(row.price_per_hour, 4) == Decimal("3.6734")
    assert (row.capacity_type, row.currency, row.zone) == (CapacityType.ON_DEMAND, "USD", "")


def test_fetch_when_a_part_is_not_priced_then_no_price(apis, prices):
    sell_a2(apis)
    apis.skus.pop(1)
    assert prices.fetch({"us-central1": ("a2-highgpu-1g",)}, AT) == ()
    assert prices.fetch({"europe-west4": ("a2-highgpu-1g",)}, AT) == ()


def test_fetch_when_machine_has_local_disks_then_they_are_in_the_price(apis, prices):
    sell_a2(apis)
    apis.sell_google("Nvidia Tesla A100 80GB GPU running in Americas", "3.928057", group="GPU")
    wanted = {"us-central1": ("a2-ultragpu-1g",)}
    assert prices.fetch(wanted, AT) == ()
    apis.sell_google("SSD backed Local Storage", "0.08", group="LocalSSD", unit="GiBy.mo")
    (row,) = prices.fetch(wanted, AT)
    assert round(row.price_per_hour, 3) == Decimal("5.069")


def test_fetch_when_preemptible_then_spot(apis, prices):
    sell_a2(apis, usage="Preemptible")
    (row,) = prices.fetch({"us-central1": ("a2-highgpu-2g",)}, AT)
    assert row.capacity_type is CapacityType.SPOT
    assert round(row.price_per_hour, 3) == Decimal("7.347")


def test_fetch_when_slice_then_by_the_chip_and_host_included(apis, prices):
    apis.sell_google("TpuV5p running in Americas", "4.2", group="TPU")
    apis.sell_google("Nvidia B200 (1 gpu slice)", "11.277", group="GPU")
    apis.sell_google("SSD backed Local Storage", "0.08", group="LocalSSD", unit="GiBy.mo")
    rows = prices.fetch({"us-central1": ("tpu-v5p-8", "a4-highgpu-8g")}, AT)
    found = {row.instance_type: row.price_per_hour for row in rows}
    assert found["tpu-v5p-8"] == Decimal("16.8")
    assert round(found["a4-highgpu-8g"], 3) == Decimal("91.531")


def test_fetch_when_key_is_wrong_then_stop_and_key_is_not_told(apis):
    with pytest.raises(CloudAuthError) as caught:
        GooglePrices(api_key="AIza-other", endpoint_url=apis.url).fetch({"us-central1": ("a2-highgpu-1g",)}, AT)
    assert "AIza" not in str(caught.value)
    assert all("AIza" not in str(arguments) for _, arguments in apis.calls)
