"""What one machine takes of each quota, in the cloud's own unit."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from hostler.catalog import aws_quota
from hostler.catalog.specs import MachineSpec, TpuSpec, machine_specs, tpu_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering, QuotaUse

BOOT_DISK_GIB: Final = 200
"""Counted against Google's disk quota for each machine: the default size of a root volume."""

_AZURE_FAMILIES: Final = (
    (r"NC\d+as_T4_v3", "Standard NCASv3_T4 Family"),
    (r"NC\d+r?s_v3", "standardNCSv3Family"),
    (r"NC\d+ads_A100_v4", "StandardNCADSA100v4Family"),
    (r"NC\d+ads_A10_v4", "StandardNCADSA10v4Family"),
    (r"NC\d+adi?s_H100_v5", "StandardNCadsH100v5Family"),
    (r"NCC\d+ads_H100_v5", "StandardNCCads2023Family"),
    (r"ND\d+rs_v2", "standardNDSv2Family"),
    (r"ND\d+asr_(A100_)?v4", "Standard NDASv4_A100 Family"),
    (r"ND\d+amsr_A100_v4", "standardNDAMSv4_A100Family"),
    (r"ND\d+isr_H100_v5", "standardNDSH100v5Family"),
    (r"ND\d+isr_H200_v5", "standardNDISRH200V5Family"),
    (r"ND\d+isr_MI300X_v5", "standardNDISv5MI300XFamily"),
    (r"NV\d+adm?s_A10_v5", "StandardNVADSA10v5Family"),
    (r"NV\d+s_v3", "standardNVSv3Family"),
    (r"NV\d+as_v4", "standardNVSv4Family"),
    (r"NP\d+s", "standardNPSFamily"),
)
"""Size without ``Standard_`` -> the family's id in the usage list. Source: OpenShift's list of tested Azure families, and public
listings of ``az vm list-usage``, read 2026-12-01.
"""

_GOOGLE_GPU: Final = {
    "A100": "NVIDIA_A100_GPUS",
    "A100-80GB": "NVIDIA_A100_80GB_GPUS",
    "K80": "NVIDIA_K80_GPUS",
    "L4": "NVIDIA_L4_GPUS",
    "P100": "NVIDIA_P100_GPUS",
    "P4": "NVIDIA_P4_GPUS",
    "T4": "NVIDIA_T4_GPUS",
    "V100": "NVIDIA_V100_GPUS",
}
_GOOGLE_GPU_FAMILY: Final = {
    "B200": "NVIDIA_B200",
    "H100": "NVIDIA_H100",
    "H200": "NVIDIA_H200",
    "RTX-PRO-6000": "NVIDIA_RTX_PRO_6000",
}
"""Later models have no metric of their own: one metric, GPUS_PER_GPU_FAMILY, has them as a dimension; on spot they have one.
Source: cloud.google.com/compute/resource-usage, GPU quota, read 2026-12-01.
"""

_OWN_CPU_METRIC: Final = {"a2": "A2_CPUS", "g2": "CPUS", "n1": "CPUS"}
"""Machine series -> metric; others count CPUS_PER_VM_FAMILY. Source as above, CPU quota."""


def aws(instance_type: str, capacity_type: CapacityType, vcpu_count: int) -> tuple[QuotaUse, ...]:
    """Returns the family bucket's use in vCPU; empty for a family whose bucket is not known."""
    quota = aws_quota.quota_for(instance_type, capacity_type)
    if quota is None:
        return ()
    return (QuotaUse(code=quota.code, name=quota.name, unit=quota.unit, amount=Decimal(vcpu_count)),)


@lru_cache(maxsize=4096)
def azure(instance_type: str, capacity_type: CapacityType, vcpu_count: int) -> tuple[QuotaUse, ...]:
    """Returns the use of the family's and the region's cores, or of the one bucket of all spot machines of a region.

    Source: learn.microsoft.com/azure/virtual-machines/quotas and /spot-vms, read 2026-12-01.
    """
    amount = Decimal(vcpu_count)
    if capacity_type is CapacityType.SPOT:
        return (QuotaUse(code="lowPriorityCores", name="Total Regional Low-priority vCPUs", unit="vCPU", amount=amount),)
    region = QuotaUse(code="cores", name="Total Regional vCPUs", unit="vCPU", amount=amount)
    family = _azure_family(instance_type.removeprefix("Standard_"))
    if family is None:
        return (region,)
    return (QuotaUse(code=family, name=f"{family} vCPUs", unit="vCPU", amount=amount), region)


@lru_cache(maxsize=4096)
def google(spec: MachineSpec, capacity_type: CapacityType, vcpu_count: int) -> tuple[QuotaUse, ...]:
    """Returns the use of GPUs by model, GPUs of all regions, CPUs by family and of all regions, and disk.

    A part of a GPU counts as one.

    Args:
        vcpu_count: of the host; 0 when it is not known which one.
    """
    instance_type = spec.instance_type
    count = Decimal(max(1, spec.accelerator_count))
    uses = [QuotaUse(code="GPUS_ALL_REGIONS", name="GPUs (all regions)", unit="GPU", amount=count, scope="global")]
    if metric := _google_gpu_metric(instance_type, capacity_type, spec.accelerator):
        uses.insert(0, QuotaUse(code=metric, name=_spoken(metric), unit="GPU", amount=count))
    series = instance_type.partition("-")[0]
    if vcpu_count:
        metric = _OWN_CPU_METRIC.get(series, f"CPUS_PER_VM_FAMILY/{series.upper()}")
        uses.append(QuotaUse(code=metric, name=_spoken(metric), unit="vCPU", amount=Decimal(vcpu_count)))
        uses.append(
            QuotaUse(
                code="CPUS_ALL_REGIONS", name="CPUs (all regions)", unit="vCPU", amount=Decimal(vcpu_count), scope="global"
            )
        )
    uses.append(QuotaUse(code="SSD_TOTAL_GB", name="Persistent disk SSD (GB)", unit="GB", amount=Decimal(BOOT_DISK_GIB)))
    if spec.local_nvme_gib:
        metric = _google_local_ssd_metric(series, capacity_type)
        uses.append(QuotaUse(code=metric, name=_spoken(metric), unit="GB", amount=Decimal(spec.local_nvme_gib)))
    return tuple(uses)


@lru_cache(maxsize=4096)
def google_tpu(spec: TpuSpec, capacity_type: CapacityType, chip_count: int) -> tuple[QuotaUse, ...]:
    """Returns the use of the version's quota, which holds per zone. Source: cloud.google.com/tpu/docs/quota, read 2026-12-01."""
    name = ("Preemptible" if capacity_type is CapacityType.SPOT else "") + spec.quota_name
    counted = chip_count * spec.counted_per_chip if spec.quota_unit == "core" else chip_count
    return (QuotaUse(code=name, name=_spoken(name), unit=spec.quota_unit, amount=Decimal(counted), scope="zone"),)


@lru_cache(maxsize=4096)
def alibaba(instance_type: str, capacity_type: CapacityType, vcpu_count: int) -> tuple[QuotaUse, ...]:
    """Returns the use of the family's vCPUs in a region, which pay-as-you-go and spot machines have apart.

    Quota Center has them under product ``ecs-spec``, with the charge type as a dimension; the code here joins the three.
    Source: alibabacloud.com/help/ecs/user-guide/view-and-increase-instance-quotas, read 2026-12-01.
    """
    family = instance_type.removeprefix("ecs.").partition(".")[0].partition("-")[0]
    is_spot = capacity_type is CapacityType.SPOT
    charge = "Spot" if is_spot else "PostPaid"
    words = "preemptible" if is_spot else "pay-as-you-go"
    return (
        QuotaUse(
            code=f"ecs-spec/{family}/{charge}",
            name=f"vCPUs of {words} instances of family {family}",
            unit="vCPU",
            amount=Decimal(vcpu_count),
        ),
    )


def uses_of(item: Offering) -> tuple[QuotaUse, ...]:
    """Returns what one machine of the offering takes; empty for a cloud whose quotas are not known."""
    if item.cloud == "aws":
        return aws(item.instance_type, item.capacity_type, item.vcpu_count)
    if item.cloud == "azure":
        return azure(item.instance_type, item.capacity_type, item.vcpu_count)
    if item.cloud == "alibaba":
        return alibaba(item.instance_type, item.capacity_type, item.vcpu_count)
    if item.cloud != "gcp":
        return ()
    tpu = next((spec for spec in tpu_specs().values() if spec.accelerator == item.accelerator), None)
    if tpu is not None:
        return google_tpu(tpu, item.capacity_type, item.accelerator_count)
    spec = machine_specs().get((item.cloud, item.instance_type))
    return google(spec, item.capacity_type, item.vcpu_count) if spec else ()


def _azure_family(size: str) -> str | None:
    return next((family for pattern, family in _AZURE_FAMILIES if re.fullmatch(pattern, size)), None)


def _google_gpu_metric(instance_type: str, capacity_type: CapacityType, accelerator: str) -> str | None:
    is_spot = capacity_type is CapacityType.SPOT
    if accelerator in _GOOGLE_GPU:
        return ("PREEMPTIBLE_" if is_spot else "") + _GOOGLE_GPU[accelerator]
    family = _GOOGLE_GPU_FAMILY.get(accelerator)
    if family is None:
        return None
    if instance_type.startswith("a3-mega"):
        family = "NVIDIA_H100_MEGA"
    return f"PREEMPTIBLE_{family}_GPUS" if is_spot else f"GPUS_PER_GPU_FAMILY/{family}"


def _google_local_ssd_metric(series: str, capacity_type: CapacityType) -> str:
    if capacity_type is CapacityType.SPOT:
        return "PREEMPTIBLE_LOCAL_SSD_GB"
    return "LOCAL_SSD_TOTAL_GB" if series in _OWN_CPU_METRIC else f"LOCAL_SSD_TOTAL_GB_PER_VM_FAMILY/{series.upper()}"


def _spoken(metric: str) -> str:
    """Returns a metric's id as words; a name in one piece (``TPUV4sPerProjectPerZone``) stays."""
    return metric.replace("_", " ").replace("/", " of ")
