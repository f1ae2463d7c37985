import os
import subprocess
import sys
from decimal import Decimal

import pytest

from hostler.catalog.aws import load, read, with_accelerators
from hostler.catalog.aws_quota import quota_for
from hostler.catalog.errors import CatalogError
from hostler.model.enums import CapacityType

_WHAT = "InstanceType,Region,OnDemandPerHour,vCPUs,MemoryMiB,GpuName,GpuManufacturer"
HEADING = f"{_WHAT},GpuCount,GpuMemoryMiB,LocalNvmeGB,NetworkMbps,Efa"
GOOD = "p5.48xlarge,us-east-1,55.04,192,2097152,h100,nvidia,8,81920,30400,3200000,32"


def table(*rows: str) -> str:
    return "\n".join(["# remark", HEADING, *rows])


def names(accelerator: str, count: int) -> list[str]:
    return [row.instance_type for row in with_accelerators(load(), accelerator, count)]


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
def test_load_when_price_is_published_then_it_is_that(instance_type, price):
    assert load()[instance_type].price_usd_per_hour("us-east-1") == Decimal(price)


def test_load_when_read_then_counts_are_those_of_the_source():
    assert len(load()) == 83
    p5 = load()["p5.48xlarge"]
    assert (p5.vcpu_count, p5.accelerator, p5.accelerator_count, p5.efa_count, p5.memory_mib) == (192, "H100", 8, 32, 2097152)


@pytest.mark.parametrize(
    ("accelerator", "count", "expected"),
    [
        ("H100", 8, ["p5.48xlarge"]),
        ("H100", 1, ["p5.4xlarge"]),
        ("A100", 8, ["p4d.24xlarge"]),
        ("A100-80GB", 8, ["p4de.24xlarge"]),
        ("V100-32GB", 8, ["p3dn.24xlarge"]),
        ("H200", 8, ["p5e.48xlarge", "p5en.48xlarge"]),
        ("H100", 3, []),
    ],
)
def test_with_accelerators_when_model_and_count_then_exactly_those(accelerator, count, expected):
    assert names(accelerator, count) == expected


def test_with_accelerators_when_type_has_part_of_an_accelerator_then_it_is_not_one():
    assert not [name for name in names("L4", 1) if name.startswith(("g6f", "gr6f"))]


@pytest.mark.parametrize(("instance_type", "region"), [("p5.48xlarge", "us-west-2"), ("p5e.48xlarge", "us-east-1")])
def test_price_when_unknown_then_none_and_not_zero(instance_type, region):
    assert load()[instance_type].price_usd_per_hour(region) is None


def test_price_when_in_yuan_then_not_given_as_usd():
    assert load()["g5.xlarge"].price_usd_per_hour("cn-north-1") is None


def test_read_when_price_is_zero_then_no_price():
    assert read(table(GOOD.replace("55.04", "0.00")), source="t.csv")["p5.48xlarge"].prices_usd_per_hour == {}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (GOOD.replace("55.04", "cheap"), "OnDemandPerHour 'cheap'"),
        (GOOD.replace("55.04", "-1"), "OnDemandPerHour '-1'"),
        (GOOD.replace("55.04", "NaN"), "OnDemandPerHour 'NaN'"),
        (GOOD.replace("us-east-1", ""), "Region ''"),
        (GOOD.replace(",192,", ",,"), "vCPUs ''"),
        (GOOD.replace(",192,", ",0,"), "vCPUs '0'"),
        (GOOD.replace(",8,", ",-8,"), "GpuCount '-8'"),
        (GOOD.replace(",8,", ",8.5,"), "GpuCount '8.5'"),
        (GOOD.replace("p5.48xlarge", "p5"), "InstanceType 'p5'"),
        (GOOD + ",more", "13 cells, expected 12"),
        (GOOD.replace("us-east-1,55.04,192", "us-west-2,55.04,96"), "described otherwise"),
        (GOOD.replace("55.04", "1.00"), "another price"),
    ],
)
def test_read_when_row_is_broken_then_file_line_and_field_are_named(row, problem):
    with pytest.raises(CatalogError) as error:
        read(table(GOOD, "", row), source="t.csv")
    assert str(error.value).startswith("t.csv, line 5: ")
    assert problem in str(error.value)


def test_read_when_column_is_missing_then_named():
    with pytest.raises(CatalogError, match="column GpuCount is missing"):
        read(table(GOOD).replace("GpuCount", "Gpus"), source="t.csv")


@pytest.mark.parametrize(
    ("instance_type", "capacity_type", "code"),
    [
        ("p5.48xlarge", CapacityType.ON_DEMAND, "L-417A185B"),
        ("p5.48xlarge", CapacityType.RESERVED, "L-417A185B"),
        ("p5en.48xlarge", CapacityType.SPOT, "L-C4BD4855"),
        ("p4d.24xlarge", CapacityType.SPOT, "L-7212CCBC"),
        ("p3.2xlarge", CapacityType.ON_DEMAND, "L-417A185B"),
        ("g6e.xlarge", CapacityType.SPOT, "L-3819A6DF"),
        ("gr6.4xlarge", CapacityType.ON_DEMAND, "L-DB2E81BA"),
        ("trn1.32xlarge", CapacityType.ON_DEMAND, "L-2C3B7624"),
    ],
)
def test_quota_for_when_family_is_known_then_its_bucket_in_vcpu(instance_type, capacity_type, code):
    quota = quota_for(instance_type, capacity_type)
    assert quota is not None
    assert (quota.code, quota.unit) == (code, "vCPU")


def test_quota_for_when_sources_disagree_then_none():
    assert quota_for("p6-b200.48xlarge", CapacityType.SPOT) is None


def test_load_when_imported_alone_then_no_sdk_comes_along():
    heavy = "('boto3', 'botocore', 'airflow', 'pydantic')"
    code = f"import sys, hostler.catalog.aws as a; a.load(); print([m for m in {heavy} if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "[]"
