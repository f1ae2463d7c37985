"""Quota uses, each in its cloud's own unit."""

from decimal import Decimal

import pytest

from hostler.catalog import quotas
from hostler.catalog.specs import machine_specs, tpu_specs
from hostler.model.enums import CapacityType

ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


def uses(found):
    return {use.code: (use.unit, use.amount, use.scope) for use in found}


@pytest.mark.parametrize(
    ("size", "family"),
    [
        ("NC4as_T4_v3", "Standard NCASv3_T4 Family"),
        ("NC24rs_v3", "standardNCSv3Family"),
        ("NC24ads_A100_v4", "StandardNCADSA100v4Family"),
        ("NC40ads_H100_v5", "StandardNCadsH100v5Family"),
        ("NC80adis_H100_v5", "StandardNCadsH100v5Family"),
        ("NCC40ads_H100_v5", "StandardNCCads2023Family"),
        ("ND96asr_v4", "Standard NDASv4_A100 Family"),
        ("ND96amsr_A100_v4", "standardNDAMSv4_A100Family"),
        ("ND96isr_H100_v5", "standardNDSH100v5Family"),
        ("ND96isr_H200_v5", "standardNDISRH200V5Family"),
        ("ND96isr_MI300X_v5", "standardNDISv5MI300XFamily"),
        ("NV36adms_A10_v5", "StandardNVADSA10v5Family"),
        ("NP40s", "standardNPSFamily"),
    ],
)
def test_azure_when_on_demand_then_cores_of_family_and_of_region(size, family):
    found = uses(quotas.azure(f"Standard_{size}", ON_DEMAND, 96))
    assert found == {family: ("vCPU", 96, "region"), "cores": ("vCPU", 96, "region")}


def test_azure_when_spot_then_one_bucket_of_the_region():
    assert uses(quotas.azure("Standard_ND96isr_H100_v5", SPOT, 96)) == {"lowPriorityCores": ("vCPU", 96, "region")}


def test_azure_when_every_known_size_then_a_family():
    for cloud, instance_type in machine_specs():
        if cloud == "azure":
            assert len(quotas.azure(instance_type, ON_DEMAND, 4)) == 2, instance_type


def test_google_when_older_model_then_its_own_metric_and_all_regions_and_cpus_and_disk():
    found = uses(quotas.google(machine_specs()["gcp", "a2-ultragpu-8g"], ON_DEMAND, 96))
    assert found == {
        "NVIDIA_A100_80GB_GPUS": ("GPU", 8, "region"),
        "GPUS_ALL_REGIONS": ("GPU", 8, "global"),
        "A2_CPUS": ("vCPU", 96, "region"),
        "CPUS_ALL_REGIONS": ("vCPU", 96, "global"),
        "SSD_TOTAL_GB": ("GB", 200, "region"),
        "LOCAL_SSD_TOTAL_GB": ("GB", 3000, "region"),
    }


@pytest.mark.parametrize(
    ("instance_type", "kind", "code"),
    [
        ("a3-highgpu-8g", ON_DEMAND, "GPUS_PER_GPU_FAMILY/NVIDIA_H100"),
        ("a3-megagpu-8g", ON_DEMAND, "GPUS_PER_GPU_FAMILY/NVIDIA_H100_MEGA"),
        ("a3-highgpu-8g", SPOT, "PREEMPTIBLE_NVIDIA_H100_GPUS"),
        ("a2-highgpu-8g", SPOT, "PREEMPTIBLE_NVIDIA_A100_GPUS"),
    ],
)
def test_google_when_model_or_capacity_type_differs_then_the_metric_does(instance_type, kind, code):
    assert uses(quotas.google(machine_specs()["gcp", instance_type], kind, 208))[code] == ("GPU", 8, "region")


def test_google_when_tpu_then_in_its_own_unit_per_zone():
    assert uses(quotas.google_tpu(tpu_specs()["v4"], ON_DEMAND, 16)) == {"TPUV4sPerProjectPerZone": ("core", 32, "zone")}
    found = uses(quotas.google_tpu(tpu_specs()["v5litepod"], SPOT, 8))
    assert found == {"PreemptibleTPUV5sLitepodPerProjectPerZone": ("chip", 8, "zone")}


def test_aws_when_family_then_vcpus_of_its_bucket_and_not_machines():
    assert uses(quotas.aws("p3.16xlarge", ON_DEMAND, 64)) == {"L-417A185B": ("vCPU", Decimal(64), "region")}
    assert quotas.aws("p6-b200.48xlarge", SPOT, 192) == ()


def test_alibaba_when_spot_then_apart_from_pay_as_you_go():
    assert uses(quotas.alibaba("ecs.gn7i-c8g1.2xlarge", ON_DEMAND, 8)) == {"ecs-spec/gn7i/PostPaid": ("vCPU", 8, "region")}
    assert uses(quotas.alibaba("ecs.gn7i-c8g1.2xlarge", SPOT, 8)) == {"ecs-spec/gn7i/Spot": ("vCPU", 8, "region")}
