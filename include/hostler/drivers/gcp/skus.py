"""Which lines of Google's price list make a machine: its cores, its memory, its accelerators and its local disks.

Source of the descriptions: public listings of the SKUs of service Compute Engine (6F81-5844-456A), and the readers of the
price list in skypilot-org/skypilot (fetch_gcp.py, commit 21fd55418804a41d20fe7563db9c808763159722), read 2026-12-01.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from hostler.catalog.specs import MachineSpec
from hostler.model.enums import CapacityType

HOURS_A_MONTH: Final = 730
"""Google turns prices by the month into prices by the hour so. Source: cloud.google.com/compute/disks-image-pricing."""

_HOSTS: Final = (
    ("a2-", ("A2 Instance",)),
    ("a3-mega", ("A3Plus Instance", "A3 Plus Instance", "A3 Instance")),
    ("a3-ultra", ("A3Ultra Instance", "A3 Ultra Instance", "A3 Instance")),
    ("a3-", ("A3 Instance",)),
    ("g2-", ("G2 Instance",)),
)
"""Series -> how its cores and memory are described, the likeliest first. Series whose slices include the host are not here."""

_GPUS: Final = {
    "A100": ("Nvidia Tesla A100 GPU",),
    "A100-80GB": ("Nvidia Tesla A100 80GB GPU",),
    "B200": ("Nvidia B200 (1 gpu slice)",),
    "H100": ("Nvidia H100 80GB GPU",),
    "H100-MEGA": ("Nvidia H100 80GB Mega GPU", "Nvidia H100 Mega 80GB GPU", "Nvidia H100 80GB Plus GPU"),
    "H200": ("Nvidia H200 141GB GPU",),
    "L4": ("Nvidia L4 GPU",),
}

_TPUS: Final = {"TPU-v5e": "TpuV5e", "TPU-v5p": "TpuV5p", "TPU-v6e": "TpuV6e"}
"""Sold by the chip and hour, hosts included."""

_LOCAL_SSD: Final = "SSD backed Local Storage"
_OTHER_WORDS: Final = ("Calendar", "Commitment", "Custom", "DWS", "Flex Start", "Premium", "Reserved", "Sole Tenancy")
"""In the description of what is bought in another way than on demand or on spot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """One line: ``usd`` a unit (hour, GiB and hour, GiB and month) in each of ``regions`` since ``since``."""

    description: str
    capacity_type: CapacityType
    regions: frozenset[str]
    unit: str
    currency: str
    price: Decimal
    since: datetime


def sku_of(raw: Mapping[str, Any]) -> Sku | None:
    """Returns the line; None for one that is nothing we buy, or has no price."""
    category, description = raw.get("category", {}), str(raw.get("description", ""))
    usage = category.get("usageType")
    family = category.get("resourceFamily")
    if usage not in {"OnDemand", "Preemptible"} or family not in {"Compute", "Storage"}:
        return None
    if any(word in description for word in _OTHER_WORDS):
        return None
    info = (raw.get("pricingInfo") or [{}])[-1]
    expression = info.get("pricingExpression", {})
    rates = expression.get("tieredRates") or []
    unit_price = rates[-1].get("unitPrice", {}) if rates else {}
    amount = Decimal(str(unit_price.get("units") or 0)) + Decimal(str(unit_price.get("nanos") or 0)).scaleb(-9)
    if amount == 0:
        return None
    is_spot = usage == "Preemptible" or "Preemptible" in description
    return Sku(
        description=description,
        capacity_type=CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND,
        regions=frozenset(raw.get("serviceRegions") or ()),
        unit=str(expression.get("usageUnit", "")),
        currency=str(unit_price.get("currencyCode", "")),
        price=amount,
        since=_time(info.get("effectiveTime")),
    )


class PriceList:
    """The lines of one region and capacity type."""

    def __init__(self, skus: Iterable[Sku], region: str, capacity_type: CapacityType) -> None:
        self._skus = [sku for sku in skus if region in sku.regions and sku.capacity_type is capacity_type]

    def machine(self, spec: MachineSpec) -> tuple[Decimal, datetime] | None:
        """Returns what an hour of the machine costs and since when; None when any part of it has no line."""
        name = "H100-MEGA" if spec.instance_type.startswith("a3-mega") else spec.accelerator
        parts = [self._part(_GPUS.get(name, ()), Decimal(spec.accelerator_count), "h")]
        if not spec.instance_type.startswith(("a4-", "a4x-", "g4-")):
            words = next((words for series, words in _HOSTS if spec.instance_type.startswith(series)), ())
            parts.append(self._part([f"{word} Core" for word in words], Decimal(spec.vcpu_count), "h"))
            parts.append(self._part([f"{word} Ram" for word in words], Decimal(spec.memory_mib) / 1024, "GiBy.h"))
        if spec.local_nvme_gib:
            gib = Decimal(spec.local_nvme_gib) / HOURS_A_MONTH
            parts.append(self._part([_LOCAL_SSD], gib, "GiBy.mo"))
        return _total(parts)

    def tpu(self, accelerator: str, chips: int) -> tuple[Decimal, datetime] | None:
        """Returns what an hour of a slice costs; None when its version is not sold by the chip here."""
        word = _TPUS.get(accelerator)
        return _total([self._part([word], Decimal(chips), "h")]) if word else None

    def _part(self, words: Sequence[str], amount: Decimal, unit: str) -> tuple[Decimal, datetime] | None:
        """Returns the price of a part; of several lines the dearest, so that a list that is unclear is never too cheap."""
        for word in words:
            fitting = [sku for sku in self._skus if word in sku.description and sku.unit == unit]
            if fitting:
                best = max(fitting, key=lambda sku: sku.price)
                return best.price * amount, best.since
        return None


def _total(parts: Sequence[tuple[Decimal, datetime] | None]) -> tuple[Decimal, datetime] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return sum((price for price, _ in known), Decimal(0)), max(since for _, since in known)


def _time(text: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
