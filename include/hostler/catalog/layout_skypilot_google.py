"""Google's part of SkyPilot's layout: a host row and an accelerator row make one offering; TPU slices are whole."""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from hostler.catalog import quotas
from hostler.catalog.gather import Gathering, Source
from hostler.catalog.names import short_name
from hostler.catalog.specs import MachineSpec, TpuSpec, machine_specs, tpu_specs
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering

_CLOUD: Final = "gcp"
_TYPES: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT)

_HOST_IS_INCLUDED: Final = ("a4-", "a4x-", "g4-")
"""Series whose accelerator is sold as a slice that includes its part of the host; the list then has the host at 0. Source: SKU
``Nvidia B200 (1 gpu slice)`` of Google's price list. Everywhere else a host at 0 is a host without a price.
"""

_STAND_IN_PRICE: Final = Decimal(700)
"""What SkyPilot's fetcher writes for a TPU v6e slice whose price it did not find, of whatever size. Source: ``TPU_V6E_MAX_PRICE``,
skypilot-org/skypilot, sky/catalog/data_fetchers/fetch_gcp.py, commit 21fd55418804a41d20fe7563db9c808763159722.
"""

_N1_MAX_VCPUS: Final = {
    "K80": {1: 8, 2: 16, 4: 32, 8: 64},
    "P100": {1: 16, 2: 32, 4: 96},
    "P4": {1: 24, 2: 48, 4: 96},
    "T4": {1: 48, 2: 48, 4: 96},
    "V100": {1: 12, 2: 24, 4: 48, 8: 96},
}
"""Accelerators that are attached to a host of series N1 -> most vCPUs of the host by their count.
Source: cloud.google.com/compute/docs/gpus, table of N1 machines, read 2026-12-01.
"""

_MEMORY_MIB: Final = {"K80": 12288, "P100": 16384, "P4": 8192, "T4": 16384, "V100": 16384}


@dataclass(frozen=True, slots=True)
class _Host:
    """A host row, without accelerators."""

    instance_type: str
    region: str
    zone: str
    vcpus: int
    memory_mib: int
    prices: tuple[Decimal | None, Decimal | None]
    line: int


@dataclass(frozen=True, slots=True)
class _Gpus:
    """An accelerator row, without a host."""

    name: str
    count: int
    region: str
    zone: str
    prices: tuple[Decimal | None, Decimal | None]
    line: int

    @property
    def doubts(self) -> tuple[str, ...]:
        """Says so when on-demand is cheaper than spot: one of the two is not the real price."""
        on_demand, spot = self.prices
        if on_demand is None or spot is None or on_demand >= spot:
            return ()
        return (f"the list has {self.count} x {self.name} on demand at {on_demand} USD, below its spot price of {spot} USD",)


class GoogleParts:
    """Keeps hosts and accelerators until the whole list is read, and joins them then."""

    def __init__(self, source: Source, into: Gathering) -> None:
        self._source = source
        self._into = into
        self._hosts: list[_Host] = []
        self._gpus: dict[tuple[str, str, int], _Gpus] = {}
        self._joined: set[tuple[str, str, int]] = set()

    def take(self, fields: list[str], zone: str, line: int) -> None:
        """Reads one row, its cells in the order of ``layout_skypilot``. Raises ValueError naming the field."""
        instance_type, word, count, vcpus, memory, on_demand, spot, region = fields
        if not region or not zone.startswith(region):
            raise ValueError(f"AvailabilityZone {zone!r} is not in Region {region!r}")
        numbers = self._into.numbers
        prices = (numbers.price(on_demand, "Price"), numbers.price(spot, "SpotPrice"))
        if word.startswith("tpu-"):
            self._take_tpu(word, region, zone, prices, line)
        elif instance_type:
            self._hosts.append(
                _Host(
                    instance_type,
                    region,
                    zone,
                    numbers.whole(vcpus, "vCPUs", least=1),
                    numbers.mib(memory, "MemoryGiB"),
                    prices,
                    line,
                )
            )
        elif word:
            number = numbers.whole(count, "AcceleratorCount", least=1)
            self._gpus[zone, word.upper(), number] = _Gpus(word.upper(), number, region, zone, prices, line)
        else:
            raise ValueError("InstanceType and AcceleratorName are both empty")

    def join(self) -> None:
        """Adds what the kept rows make together."""
        specs = machine_specs()
        for host in self._hosts:
            spec = specs.get((_CLOUD, host.instance_type))
            if spec is not None:
                self._offer_fixed(host, spec)
            elif host.instance_type.startswith("n1-"):
                self._offer_n1(host)
        self._offer_without_host()

    def _offer_fixed(self, host: _Host, spec: MachineSpec) -> None:
        """A machine that always has the same accelerators."""
        name = "H100-MEGA" if host.instance_type.startswith("a3-mega") else spec.accelerator.upper()
        gpus = self._gpus.get((host.zone, name, spec.accelerator_count))
        is_included = host.instance_type.startswith(_HOST_IS_INCLUDED)
        for index, capacity_type in enumerate(_TYPES):
            of_host = Decimal(0) if is_included and host.prices[index] is None else host.prices[index]
            of_gpus = gpus.prices[index] if gpus else None
            self._add(host, spec, capacity_type, _sum(of_host, of_gpus), gpus)

    def _offer_n1(self, host: _Host) -> None:
        """A host that accelerators can be attached to, in each number that it may have."""
        for name, counts in _N1_MAX_VCPUS.items():
            for count, most in counts.items():
                gpus = self._gpus.get((host.zone, name, count))
                if gpus is None or host.vcpus > most:
                    continue
                self._joined.add((host.zone, name, count))
                spec = _n1_spec(host.instance_type, host.vcpus, host.memory_mib, name, count)
                for index, capacity_type in enumerate(_TYPES):
                    self._add(host, spec, capacity_type, _sum(host.prices[index], gpus.prices[index]), gpus)

    def _offer_without_host(self) -> None:
        """Accelerators that need a host of series N1 which the list does not price: offered without a price."""
        for key, gpus in self._gpus.items():
            if gpus.name not in _N1_MAX_VCPUS or key in self._joined:
                continue
            host = _Host("n1", gpus.region, gpus.zone, 0, 0, (None, None), gpus.line)
            spec = _n1_spec("n1", 0, 0, gpus.name, gpus.count)
            for capacity_type in _TYPES:
                self._add(host, spec, capacity_type, None, None)

    def _add(self, host: _Host, spec: MachineSpec, kind: CapacityType, price: Decimal | None, gpus: _Gpus | None) -> None:
        self._into.offerings.append(
            Offering(
                cloud=_CLOUD,
                region=host.region,
                zone=host.zone,
                instance_type=spec.instance_type,
                capacity_type=kind,
                accelerator=spec.accelerator,
                accelerator_count=spec.accelerator_count,
                vcpu_count=host.vcpus,
                memory_mib=host.memory_mib,
                price_usd_per_hour=price,
                price_in_currency_per_hour=price,
                price_source=self._source.at(host.line, gpus.line) if gpus else self._source.at(host.line),
                priced_at=self._source.priced_at,
                accelerator_memory_mib=spec.accelerator_memory_mib,
                network_mbps=spec.network_mbps,
                nic_count=spec.nic_count,
                local_nvme_gib=spec.local_nvme_gib,
                interconnect=spec.interconnect,
                quotas=quotas.google(spec, kind, host.vcpus),
                doubts=gpus.doubts if gpus else (),
            )
        )

    def _take_tpu(self, word: str, region: str, zone: str, prices: tuple[Decimal | None, Decimal | None], line: int) -> None:
        """A slice, whose price includes its hosts."""
        spec, chips = tpu_slice(word)
        hosts = -(-chips // spec.chips_per_host)
        for kind, price in zip(_TYPES, prices, strict=True):
            known = None if price == _STAND_IN_PRICE else price
            self._into.offerings.append(
                Offering(
                    cloud=_CLOUD,
                    region=region,
                    zone=zone,
                    instance_type=word,
                    capacity_type=kind,
                    accelerator=spec.accelerator,
                    accelerator_count=chips,
                    vcpu_count=hosts * spec.host_vcpus,
                    memory_mib=hosts * spec.host_memory_gib * 1024,
                    price_usd_per_hour=known,
                    price_in_currency_per_hour=known,
                    price_source=self._source.at(line),
                    priced_at=self._source.priced_at,
                    accelerator_memory_mib=spec.hbm_mib,
                    interconnect="ICI",
                    quotas=quotas.google_tpu(spec, kind, chips),
                )
            )


@lru_cache(maxsize=4096)
def tpu_slice(name: str) -> tuple[TpuSpec, int]:
    """Returns the version of a slice such as ``tpu-v5p-8``, and its number of chips. Raises ValueError: no such slice."""
    _, _, rest = name.partition("-")
    version, _, size = rest.rpartition("-")
    spec = tpu_specs().get(version)
    if spec is None or not size.isascii() or not size.isdigit() or int(size) < spec.counted_per_chip:
        raise ValueError(f"AcceleratorName {name!r} is not a TPU slice (known versions: {', '.join(tpu_specs())})")
    return spec, int(size) // spec.counted_per_chip


@lru_cache(maxsize=4096)
def _n1_spec(host: str, vcpus: int, memory_mib: int, name: str, count: int) -> MachineSpec:
    return MachineSpec(
        cloud=_CLOUD,
        instance_type=f"{host}+{count}x{name}",
        accelerator=short_name(name),
        accelerator_count=count,
        accelerator_memory_mib=_MEMORY_MIB[name],
        vcpu_count=vcpus,
        memory_mib=memory_mib,
        network_mbps=None,
        nic_count=1,
        local_nvme_gib=None,
        interconnect="",
    )


def _sum(of_host: Decimal | None, of_gpus: Decimal | None) -> Decimal | None:
    """Returns the price of both; None when either has none: a part without a price is not free."""
    return None if of_host is None or of_gpus is None else of_host + of_gpus
