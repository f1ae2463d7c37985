"""Loaders, on lists made up for the test."""

import gzip
import os
import subprocess
import sys
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.published import offers

from hostler.catalog.compiled import MAGIC, CompiledError
from hostler.catalog.errors import CatalogError
from hostler.catalog.offerings import Catalog, load_catalog
from hostler.catalog.rates import Rate, read_rates
from hostler.catalog.specs import machine_specs
from hostler.model.enums import CapacityType

AZURE = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,Generation,TotalGpuMemoryMiB"
T4 = "Standard_NC4as_T4_v3,T4,1,4,28,0.526,0.1,eastus,V1,"
GOOGLE = (
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,Region,AvailabilityZone,Price,SpotPrice,TotalGpuMemoryMiB"
)
A2 = "a2-highgpu-1g,12.0,85.0,,,us-central1,us-central1-a,0.7,0.3,"
A100 = ",,,A100,1,us-central1,us-central1-a,2.9,1.5,"
VAST = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,TotalGpuMemoryMiB"
KARPENTER = "Region,InstanceType,OnDemand,Spot"
ALIBABA = "Region,InstanceType,vCPUs,MemoryGiB,GpuCount,Zones,OnDemandPerHour,SpotPerHour,arch"
AWS = "InstanceType,Region,OnDemandPerHour,vCPUs,MemoryMiB,GpuName,GpuManufacturer,GpuCount,GpuMemoryMiB,LocalNvmeGB,NetworkMbps,Efa"
P5 = "p5.48xlarge,us-east-1,55.04,192,2097152,h100,nvidia,8,81920,30400,3200000,32"
ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


@pytest.fixture
def lists(tmp_path):
    """Writes price lists and loads them."""

    def load(*tables, **arguments):
        paths = []
        for number, rows in enumerate(tables):
            paths.append(tmp_path / f"list{number}.csv")
            paths[-1].write_text("\n".join(rows) + "\n")
        return load_catalog(paths, **arguments)

    return load


def priced(catalog, kind=ON_DEMAND):
    return {
        item.instance_type: item.price_usd_per_hour for item in catalog.offerings if item.capacity_type is kind and item.region
    }


def test_load_when_no_path_is_given_then_the_shipped_lists():
    shipped = load_catalog()
    assert {item.cloud for item in shipped.offerings if item.region} == {"aws", "alibaba"}
    assert set(shipped.loaded_at_source) == {"aws_2026-07-20.csv", "alibaba_2024-10-16.csv"}
    assert shipped.faults == ()


def test_load_when_file_is_packed_or_has_a_remark_or_a_mark_then_read(tmp_path):
    path = tmp_path / "any_2026-02-03.csv.gz"
    path.write_bytes(gzip.compress(("\ufeff# remark\n\n" + AZURE + "\n" + T4 + "\n").encode()))
    catalog = load_catalog([path])
    (item,) = offers(catalog, instance_type="Standard_NC4as_T4_v3", capacity_type=ON_DEMAND)
    assert item.price_source == "any_2026-02-03.csv.gz:4"
    assert str(item.priced_at.date()) == "2026-02-03"


def test_load_when_folder_is_given_then_its_lists(tmp_path):
    (tmp_path / "b.csv").write_text(f"{AZURE}\n{T4}\n")
    (tmp_path / "a.csv").write_text(f"{KARPENTER}\nus-central1,g2-standard-4,0.7,0.3\n")
    (tmp_path / "README").write_text("not a list")
    assert list(load_catalog([tmp_path]).loaded_at_source) == ["a.csv", "b.csv"]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ((AZURE, T4, T4.replace("0.526", "cheap")), "list0.csv, line 3: Price 'cheap' is not a price"),
        ((AZURE, T4.replace("0.1", "-1")), "list0.csv, line 2: SpotPrice '-1' is not a price"),
        ((AZURE, T4.replace("0.526", "nan")), "line 2: Price 'nan'"),
        ((AZURE, T4.replace("0.526", "inf")), "line 2: Price 'inf'"),
        ((AZURE, T4.replace("0.526", "1_000")), "line 2: Price '1_000'"),
        ((AZURE, T4.replace("0.526", "1e30")), "line 2: Price '1e30' is not a price"),
        ((AZURE, T4.replace(",4,28", ",4,1e999999")), "line 2: MemoryGiB '1e999999'"),
        ((AZURE, T4.replace(",4,28", ",4,1e-400")), "line 2: MemoryGiB '1e-400'"),
        ((AZURE, T4 + "nan"), "line 2: TotalGpuMemoryMiB 'nan'"),
        ((AZURE, T4.replace("eastus", "east\0us")), "line 2: is not UTF-8 text: it holds a NUL"),
        ((AZURE.replace("Generation", "Price"), T4), "line 1: column Price stands there twice"),
        ((ALIBABA, "cn-beijing,ecs.gn6i-c4g1.xlarge,4,15,1,cn-beijing-a,1e400,,amd64"), "line 2: OnDemandPerHour '1e400'"),
        ((AZURE, T4.replace(",4,28", ",0,28")), "vCPUs '0'"),
        ((AZURE, T4.replace(",4,28", ",4,-28")), "MemoryGiB '-28'"),
        ((AZURE, T4.replace("T4,1", "T4,1.5")), "AcceleratorCount '1.5'"),
        ((AZURE, T4.replace("eastus", "")), "Region must not be empty"),
        ((AZURE, T4 + ",more"), "11 cells, expected 10"),
        ((AZURE, T4[:20]), "1 cells, expected 10"),
        ((GOOGLE, A2, A100.replace("us-central1-a", "europe-west4-a")), "line 3: AvailabilityZone 'europe-west4-a'"),
        ((GOOGLE, A100.replace("A100,1", "A100,x")), "AcceleratorCount 'x'"),
        ((GOOGLE, A100.replace("A100,1", "tpu-v9-8,1")), "'tpu-v9-8' is not a TPU slice"),
        ((GOOGLE, ",,,,,us-central1,us-central1-a,1,1,"), "both empty"),
        ((KARPENTER, ",g2-standard-4,1,1"), "must not be empty"),
        ((KARPENTER, "us-central1,g2-standard-4,x,1"), "OnDemand 'x'"),
        ((ALIBABA, "cn-beijing,gn6i,4,15,1,cn-beijing-a,1,,amd64"), "not of the form ecs."),
        ((ALIBABA, "cn-beijing,ecs.gn6i-c4g1.xlarge,4,15,one,cn-beijing-a,1,,amd64"), "GpuCount 'one'"),
        ((AWS, P5.replace("us-east-1", "")), "Region ''"),
        ((AWS, P5.replace("p5.48xlarge", "p5")), "not of the form family.size"),
        ((AWS, P5.replace("h100", "")), "GpuName must not be empty"),
        (("InstanceType,Region", "a,b"), "list0.csv, line 1: no price list has these columns"),
        (("",), "list0.csv: is empty"),
    ],
)
def test_load_when_row_is_broken_then_file_line_and_field_are_named(lists, rows, problem):
    with pytest.raises(CatalogError) as error:
        lists(rows)
    assert problem in str(error.value)
    assert str(error.value).startswith("list0.csv")


def test_load_when_told_to_go_on_then_the_rest_is_loaded_and_the_broken_rows_are_named(lists):
    broken = T4.replace("0.526", "cheap").replace("NC4as", "NC8as")
    catalog = lists((AZURE, broken, T4), ("what,is,this", "1,2,3"), keep_going=True)
    assert priced(catalog)["Standard_NC4as_T4_v3"] == Decimal("0.526")
    assert [(fault.source, fault.line) for fault in catalog.faults] == [("list1.csv", 1), ("list0.csv", 2)]
    assert "Standard_NC8as_T4_v3" not in priced(catalog)


@pytest.mark.parametrize("raw", [b"\x1f\x8b broken", gzip.compress(AZURE.encode())[:-6]])
def test_load_when_packed_file_is_damaged_then_named(tmp_path, raw):
    path = tmp_path / "list.csv.gz"
    path.write_bytes(raw)
    with pytest.raises(CatalogError, match=r"^list\.csv\.gz: cannot be read"):
        load_catalog([path])


def test_load_when_file_is_missing_or_no_text_then_named(tmp_path):
    with pytest.raises(CatalogError, match=r"^gone\.csv: cannot be read"):
        load_catalog([tmp_path / "gone.csv"])
    (tmp_path / "latin.csv").write_bytes(AZURE.encode() + b"\n\xff\xfe\n")
    with pytest.raises(CatalogError, match=r"^latin\.csv, line 2: is not UTF-8"):
        load_catalog([tmp_path / "latin.csv"])
    assert len(load_catalog([tmp_path / "gone.csv"], keep_going=True).faults) == 1


def test_google_when_a_part_has_no_price_then_the_machine_has_none(lists):
    for host, gpu in (
        (A2.replace("0.7", ""), A100),
        (A2.replace("0.7", "0.0"), A100),
        (A2, A100.replace("2.9", "0")),
        (A2, None),
    ):
        catalog = lists([GOOGLE, host, *([gpu] if gpu else [])])
        assert priced(catalog)["a2-highgpu-1g"] is None


def test_google_when_the_slice_includes_the_host_then_its_zero_is_part_of_the_sum(lists):
    host = "a4-highgpu-8g,224.0,3968.0,,,us-east1,us-east1-b,0.0,0.0,"
    assert priced(lists([GOOGLE, host, ",,,B200,8,us-east1,us-east1-b,90.2,34.2,"])) == {"a4-highgpu-8g": Decimal("90.2")}
    assert priced(lists([GOOGLE, host])) == {"a4-highgpu-8g": None}


def test_google_when_host_of_series_n1_is_priced_then_each_number_that_fits(lists):
    host = "n1-standard-32,32.0,120.0,,,us-central1,us-central1-a,1.5,0.4,"
    gpus = [f",,,{name},{count},us-central1,us-central1-a,{count},0.1," for name, count in (("T4", 1), ("T4", 2), ("V100", 1))]
    catalog = lists([GOOGLE, *gpus, host])
    assert priced(catalog) == {
        "n1-standard-32+1xT4": Decimal("2.5"),
        "n1-standard-32+2xT4": Decimal("3.5"),
        "n1+1xV100": None,  # one V100 goes with at most 12 vCPUs
    }
    assert {item.accelerator_count for item in offers(catalog, instance_type="n1-standard-32+2xT4")} == {2}


def test_skypilot_when_rows_of_zones_are_whole_machines_then_each_is_one(lists):
    rows = [GOOGLE, "p4d.24xlarge,96,1152,A100,8,us-east-1,us-east-1b,32.77,12.5,327680", A2, A100]
    catalog = lists(rows)
    found = offers(catalog, instance_type="p4d.24xlarge", capacity_type=SPOT)
    assert [(item.cloud, item.zone, item.price_usd_per_hour, item.accelerator) for item in found] == [
        ("aws", "us-east-1b", Decimal("12.5"), "A100")
    ]
    assert [use.code for use in found[0].quotas] == ["L-7212CCBC"]
    assert priced(catalog)["a2-highgpu-1g"] == Decimal("3.6")


def test_google_when_spot_is_dearer_than_on_demand_then_doubted(lists):
    catalog = lists([GOOGLE, A2, A100.replace("2.9,1.5", "2.9,3.5")])
    assert "below its spot price" in offers(catalog, instance_type="a2-highgpu-1g", capacity_type=ON_DEMAND)[0].doubts[0]


@pytest.mark.parametrize(
    ("other", "is_doubted"), [("4.30", False), ("4.32", False), ("4.33", True), ("3.0", False), ("2.9", True)]
)
def test_sources_when_over_a_fifth_apart_then_doubted(lists, other, is_doubted):
    catalog = lists([GOOGLE, A2, A100], [KARPENTER, f"us-central1,a2-highgpu-1g,{other},1.8"])
    (item,) = offers(catalog, instance_type="a2-highgpu-1g", capacity_type=ON_DEMAND)
    assert (item.zone, item.price_usd_per_hour) == ("us-central1-a", Decimal("3.6"))
    assert bool(item.doubts) is is_doubted
    if is_doubted:
        assert "list0.csv:2+3" in item.doubts[0]
        assert "list1.csv:2" in item.doubts[0]


def test_sources_when_zone_has_no_price_then_that_of_its_region_stands_in(lists):
    catalog = lists([GOOGLE, A2], [KARPENTER, "us-central1,a2-highgpu-1g,3.9,1.8"])
    (item,) = offers(catalog, instance_type="a2-highgpu-1g", capacity_type=ON_DEMAND)
    assert (item.zone, item.price_usd_per_hour, item.price_source) == ("us-central1-a", Decimal("3.9"), "list1.csv:2")


def test_sources_when_one_is_newer_then_it_counts_and_the_older_is_a_doubt(tmp_path):
    (tmp_path / "a_2026-05-01.csv").write_text(f"{AZURE}\n{T4}\n")
    (tmp_path / "b_2025-05-01.csv").write_text(f"{AZURE}\n{T4.replace('0.526', '0.9')}\n")
    (item,) = offers(load_catalog([tmp_path]), instance_type="Standard_NC4as_T4_v3", capacity_type=ON_DEMAND)
    assert item.price_usd_per_hour == Decimal("0.526")
    assert "disagree by 71 %" in item.doubts[0]


def test_sources_when_of_one_day_then_the_dearer_counts(lists):
    catalog = lists([AZURE, T4, T4.replace("0.526", "0.6")])
    assert priced(catalog) == {"Standard_NC4as_T4_v3": Decimal("0.6")}


def test_rates_when_given_then_used(lists):
    row = "cn-beijing,ecs.gn6i-c4g1.xlarge,4,15,1,cn-beijing-b|cn-beijing-a,10,5,amd64"
    rate = Rate(currency="CNY", usd_per_unit=Decimal("0.2"), as_of=date(2026, 11, 30), source="test")
    catalog = lists([ALIBABA, row], rates={"CNY": rate})
    assert [item.zone for item in offers(catalog, region="cn-beijing", capacity_type=SPOT)] == ["cn-beijing-a", "cn-beijing-b"]
    assert priced(catalog) == {"ecs.gn6i-c4g1.xlarge": Decimal(2)}
    assert priced(catalog, SPOT) == {"ecs.gn6i-c4g1.xlarge": Decimal(1)}
    catalog = lists([ALIBABA, row], ["Currency,UsdPerUnit,AsOf,Source", "CNY,0.5,2026-11-30,test"])
    assert priced(catalog) == {"ecs.gn6i-c4g1.xlarge": Decimal(5)}


def test_rates_when_none_is_known_then_no_price_and_a_doubt(lists):
    catalog = lists([ALIBABA, "cn-beijing,ecs.gn6i-c4g1.xlarge,4,15,1,cn-beijing-a,10,,amd64"], rates={})
    (item,) = offers(catalog, region="cn-beijing", capacity_type=ON_DEMAND)
    assert item.price_usd_per_hour is None
    assert item.price_in_currency_per_hour == Decimal(10)
    assert item.doubts == ("no conversion rate for CNY is known",)


@pytest.mark.parametrize(
    "row", ["cny,1,2026-01-01,x", "CNY,0,2026-01-01,x", "CNY,NaN,2026-01-01,x", "CNY,1,soon,x", "CNY,1e7,2026-01-01,x"]
)
def test_rates_when_row_is_broken_then_named(row):
    with pytest.raises(CatalogError, match=r"r\.csv, line 2: "):
        read_rates(f"Currency,UsdPerUnit,AsOf,Source\n{row}\n", source="r.csv")


def test_vast_when_place_lacks_its_town_then_still_a_region_and_memory_is_each(lists):
    catalog = lists([VAST, '2x-A100_SXM4-32-65536,A100,2,32,64.0,1.9,0.00,", CA, NA",163840'])
    assert {(item.region, item.accelerator, item.accelerator_memory_mib) for item in catalog.offerings if item.region} == {
        ("CA, NA", "A100-80GB", 81920)
    }
    assert priced(catalog, SPOT) == {"2x-A100_SXM4-32-65536": None}


def test_azure_when_type_has_a_part_of_an_accelerator_then_count_is_zero(lists):
    rows = [
        AZURE,
        "Standard_NV6ads_A10_v5,A10,0.167,6,55,0.454,0.08,eastus,V1,",
        "Standard_NV4as_v4,MI25,1,4,14,0.2,0.02,eastus,V1,",
    ]
    assert {item.accelerator_count for item in lists(rows).offerings if item.region} == {0}


def test_specs_when_asked_then_fpga_machines_are_there_without_a_price():
    assert machine_specs()["aws", "f2.48xlarge"].accelerator_count == 8
    fpgas = [item for item in load_catalog().offerings if item.accelerator in {"VU9P", "VU47P", "U250"}]
    assert {item.cloud for item in fpgas} == {"alibaba", "aws", "azure"}
    assert all(item.price_usd_per_hour is None and not item.is_available for item in fpgas)


@given(st.lists(st.text(max_size=40), max_size=6), st.sampled_from([AZURE, GOOGLE, VAST, KARPENTER, ALIBABA, AWS]))
def test_load_when_rows_are_anything_then_only_catalog_errors(tmp_path_factory, rows, heading):
    path = tmp_path_factory.mktemp("any") / "list.csv"
    path.write_text("\n".join([heading, *rows]), errors="replace")
    catalog = load_catalog([path], keep_going=True)
    assert all(item.price_usd_per_hour is None or item.price_usd_per_hour > 0 for item in catalog.offerings)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: b"other" + data,
        lambda data: data[:-1],
        lambda data: data[:-3] + b"\x00" + data[-2:],
        lambda data: MAGIC + b"\x07" + data[len(MAGIC) + 1 :],
    ],
)
def test_compiled_when_damaged_or_of_another_version_then_refused(lists, spoil):
    data = lists([AZURE, T4]).to_bytes()
    assert Catalog.from_bytes(data).offerings
    with pytest.raises(CompiledError):
        Catalog.from_bytes(spoil(data))


def test_compiled_when_unpacked_then_faults_remarks_and_days_are_kept(lists):
    catalog = lists([AZURE, T4, "broken"], [KARPENTER, "us-central1,n2-standard-4,1,1"], keep_going=True)
    again = Catalog.from_bytes(catalog.to_bytes())
    assert [str(fault) for fault in again.faults] == [str(fault) for fault in catalog.faults] != []
    assert again.remarks == catalog.remarks != ()
    assert again.loaded_at_source == catalog.loaded_at_source


def test_load_when_imported_alone_then_no_sdk_comes_along():
    heavy = "('boto3', 'botocore', 'airflow', 'pydantic', 'sqlalchemy', 'great_expectations')"
    code = f"import sys, hostler.catalog.offerings as o; o.load_catalog(); print([m for m in {heavy} if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "[]"
