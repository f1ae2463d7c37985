"""Types that are known to exist and that no price list of the catalog has: kept, so that a plan can say why not."""

from collections.abc import Iterable
from dataclasses import replace

from hostler.catalog.quotas import uses_of
from hostler.catalog.specs import MachineSpec, machine_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

REASON = "no price list of the catalog has it"


def unpriced(known: Iterable[Offering]) -> tuple[Offering, ...]:
    """Returns an offering without region and price for each FPGA type that is not among ``known``.

    GPU types are not added: their clouds' lists have them or the cloud is not used.
    """
    have = {(item.cloud, item.instance_type) for item in known}
    return tuple(_offering(spec) for key, spec in machine_specs().items() if key not in have and spec.accelerator in FPGAS)


FPGAS = frozenset({"U250", "VU47P", "VU9P"})


def _offering(spec: MachineSpec) -> Offering:
    item = Offering(
        cloud=spec.cloud,
        region="",
        zone="",
        instance_type=spec.instance_type,
        capacity_type=CapacityType.ON_DEMAND,
        accelerator=spec.accelerator,
        accelerator_count=spec.accelerator_count,
        vcpu_count=spec.vcpu_count,
        memory_mib=spec.memory_mib,
        price_usd_per_hour=None,
        is_available=False,
        unavailable_reason=REASON,
        accelerator_memory_mib=spec.accelerator_memory_mib,
        network_mbps=spec.network_mbps,
        nic_count=spec.nic_count,
        local_nvme_gib=spec.local_nvme_gib,
        interconnect=spec.interconnect,
    )
    return replace(item, quotas=uses_of(item))
