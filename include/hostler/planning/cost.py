"""The true cost of doing the work on an offering: the machine, what losses add to it, disks, and moving the data."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hostler.catalog.disks import disk_usd_per_gib_hour
from hostler.catalog.egress import egress_usd_per_gib
from hostler.catalog.interruptions import FAULTS_PER_ACCELERATOR_HOUR, SPOT_LOSSES_PER_NODE_HOUR
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.overhead import Overhead, overhead
from hostler.planning.terms import CostTerms

DOUBT_RATIO: Final = Decimal("2.1")
"""An offering whose price is doubted is ranked as if it cost so many times as much. Source: the widest disagreement seen between
two public catalogs, a3-highgpu-8g in us-central1: 88.49 / 43.0662 = 2.05 (ADR 12).
"""

_HOUR_S: Final = Decimal(3600)
_PER_HOUR: Final = Decimal("0.0001")
_CENT: Final = Decimal("0.01")
_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Part of a gang: so many nodes on one offering."""

    offering: Offering
    node_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueCost:
    """What the whole work costs, all in USD.

    Attributes:
        usd_per_useful_accelerator_hour: total over the useful hours of all accelerators: what offerings are ranked by.
        machine_usd, disk_usd, egress_usd: its parts, losses included.
        wall_hours: expected length with start-up and losses. overhead_ratio: expected hours for one useful hour.
        losses_per_hour: of the whole gang. checkpoint_interval_s: the best one; None when nothing is ever lost.
    """

    usd_per_useful_accelerator_hour: Decimal
    total_usd: Decimal
    machine_usd: Decimal
    disk_usd: Decimal
    egress_usd: Decimal
    wall_hours: Decimal
    overhead_ratio: Decimal
    losses_per_hour: Decimal
    checkpoint_interval_s: Decimal | None


class CostModel:
    """Costs of one work over many offerings; what only place or weather decides is worked out once."""

    def __init__(self, terms: CostTerms) -> None:
        self._terms = terms
        self._places: dict[tuple[str, str], tuple[Decimal, Decimal, str]] = {}
        self._rates: dict[tuple[str, str, str, int], Decimal] = {}
        self._overheads: dict[Decimal, Overhead] = {}
        self._has_own_rates = bool(terms.interruptions)

    def cost_of(self, shares: Sequence[Share]) -> TrueCost | None:
        """Returns the cost of a gang; None when losses leave no progress to speak of.

        Args:
            shares: not empty; each with a true price.
        """
        losses, per_hour, disk_per_hour, egress, accelerators = _ZERO, _ZERO, _ZERO, _ZERO, 0
        for share in shares:
            offering, count = share.offering, share.node_count
            losses += self.losses_per_node_hour(offering) * count
            per_hour += (offering.price_usd_per_hour or _ZERO) * count
            disk, moving, _ = self._place(offering.cloud, offering.region)
            disk_per_hour += disk * count
            egress = max(egress, moving)
            accelerators += offering.accelerator_count * count
        return self._total(losses, per_hour, disk_per_hour, egress, accelerators)

    def losses_per_node_hour(self, offering: Offering) -> Decimal:
        """Returns how often one node of the offering is lost in an hour, by faults and, on spot, by the cloud's hand."""
        faults = FAULTS_PER_ACCELERATOR_HOUR * offering.accelerator_count
        if offering.capacity_type is not CapacityType.SPOT:
            return faults
        return faults + self._spot_rate(offering)

    def egress_words(self, offering: Offering) -> str:
        """Returns which price of moving the data counts for the offering; empty when none is moved."""
        return self._place(offering.cloud, offering.region)[2]

    def _spot_rate(self, offering: Offering) -> Decimal:
        if not self._has_own_rates:
            return SPOT_LOSSES_PER_NODE_HOUR
        where = f"{offering.cloud}/{offering.region}"
        for subject in (offering.key, f"{where}//{offering.instance_type}", where, offering.cloud):
            if (rate := self._terms.interruptions.get(subject)) is not None:
                return rate
        return SPOT_LOSSES_PER_NODE_HOUR

    def _total(
        self, losses: Decimal, per_hour: Decimal, disk_per_hour: Decimal, egress: Decimal, accelerators: int
    ) -> TrueCost | None:
        terms = self._terms
        burden = self._overheads.get(losses)
        if burden is None:
            burden = self._overheads[losses] = overhead(losses, terms.checkpoint_s, terms.restore_s)
        if burden.ratio is None:
            return None
        wall = terms.startup_s / _HOUR_S + terms.useful_hours * burden.ratio
        machine, disk = per_hour * wall, disk_per_hour * wall
        total = machine + disk + egress
        return TrueCost(
            usd_per_useful_accelerator_hour=(total / (terms.useful_hours * accelerators)).quantize(_PER_HOUR),
            total_usd=total.quantize(_CENT),
            machine_usd=machine.quantize(_CENT),
            disk_usd=disk.quantize(_CENT),
            egress_usd=egress.quantize(_CENT),
            wall_hours=wall.quantize(_PER_HOUR),
            overhead_ratio=burden.ratio,
            losses_per_hour=losses,
            checkpoint_interval_s=burden.checkpoint_interval_s,
        )

    def _place(self, cloud: str, region: str) -> tuple[Decimal, Decimal, str]:
        """Returns (disk of a node for an hour, moving all data once, which price of moving that is)."""
        known = self._places.get((cloud, region))
        if known is None:
            terms = self._terms
            into, words = egress_usd_per_gib(terms.data_at, cloud, region)
            moving = into * terms.data_gib if terms.data_gib else _ZERO
            if terms.output_gib:
                target_cloud, _, target_region = terms.data_at.partition("/")
                back, back_words = egress_usd_per_gib(f"{cloud}/{region}", target_cloud, target_region)
                moving += back * terms.output_gib
                words = f"{words}; back: {back_words}" if terms.data_gib else back_words
            disk = disk_usd_per_gib_hour(cloud) * terms.disk_gib
            known = self._places[cloud, region] = (disk, moving, words if moving else "")
        return known
