"""The true cost of doing the work on an offering: the machine, what losses add to it, disks, and moving the data."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from hostler.catalog.disks import disk_usd_per_gib_hour
from hostler.catalog.egress import egress_usd_per_gib
from hostler.catalog.interruptions import FAULTS_PER_ACCELERATOR_HOUR, SPOT_LOSSES_PER_NODE_HOUR
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.overhead import HOPELESS_RATIO, Overhead, overhead
from hostler.planning.terms import CostTerms

DOUBT_RATIO: Final = Decimal("2.1")
"""An offering whose price is doubted is ranked as if it cost so many times as much. Source: the widest disagreement seen between
two public catalogs, a3-highgpu-8g in us-central1: 88.49 / 43.0662 = 2.05 (ADR 12).
"""

HOPELESS: Final = "nodes would be lost so often that the work never ends"
ASSUMED_HOPELESS: Final = (
    f"at the assumed {SPOT_LOSSES_PER_NODE_HOUR} losses of a spot node an hour a gang of this size makes no progress: "
    f"counted {HOPELESS_RATIO} times; give your own rate"
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBasis:
    """All of a gang's cost but its machines' price, in one place and weather.

    Attributes:
        node_count: of the whole gang. accelerators: of all its nodes. useful_hours: see ``CostTerms``.
        disk_usd_per_hour: of all nodes. egress_words: which price of moving the data that is; empty when none is moved.
        burden: what losses do. overhead_ratio: its ratio, or ``HOPELESS_RATIO`` when there is no progress to speak of.
        is_assumed: True when a loss rate of spot is the measured default and not the user's own.
    """

    node_count: int
    accelerators: int
    useful_hours: Decimal
    wall_hours: Decimal
    disk_usd_per_hour: Decimal
    egress_usd: Decimal
    egress_words: str
    losses_per_hour: Decimal
    burden: Overhead
    overhead_ratio: Decimal
    is_assumed: bool
    _per_price: Decimal
    _fixed: Decimal

    @classmethod
    def of(
        cls,
        terms: CostTerms,
        *,
        node_count: int,
        accelerators: int,
        losses: Decimal,
        is_assumed: bool,
        disk: Decimal,
        moving: tuple[Decimal, str],
    ) -> "CostBasis":
        """Returns the basis. ``disk``: of all nodes for an hour. ``moving``: moving the data, and which price that is."""
        burden = overhead(losses, terms.checkpoint_s, terms.restore_s)
        ratio = HOPELESS_RATIO if burden.ratio is None else burden.ratio
        wall = terms.startup_s / _HOUR_S + terms.useful_hours * ratio
        useful = terms.useful_hours * accelerators
        return cls(
            node_count=node_count,
            accelerators=accelerators,
            useful_hours=terms.useful_hours,
            wall_hours=wall,
            disk_usd_per_hour=disk,
            egress_usd=moving[0],
            egress_words=moving[1],
            losses_per_hour=losses,
            burden=burden,
            overhead_ratio=ratio,
            is_assumed=is_assumed,
            _per_price=wall / useful,
            _fixed=(disk * wall + moving[0]) / useful,
        )

    @property
    def is_refused(self) -> bool:
        """True when, by the user's own loss rates, the work would never end."""
        return self.burden.ratio is None and not self.is_assumed

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know: an estimate of no progress that rests on the default alone refuses nothing, but must be told."""
        return (ASSUMED_HOPELESS,) if self.burden.ratio is None and self.is_assumed else ()

    @property
    def line(self) -> tuple[Decimal, Decimal]:
        """(slope, offset): a useful accelerator-hour costs ``slope * price of one node + offset``, if all nodes cost the same."""
        return (self._per_price * self.node_count, self._fixed)

    def cost(self, usd_per_hour: Decimal) -> TrueCost:
        """Returns the cost with its parts. ``usd_per_hour``: price of all machines of the gang."""
        machine, disk = usd_per_hour * self.wall_hours, self.disk_usd_per_hour * self.wall_hours
        return TrueCost(
            usd_per_useful_accelerator_hour=(usd_per_hour * self._per_price + self._fixed).quantize(_PER_HOUR),
            total_usd=(machine + disk + self.egress_usd).quantize(_CENT),
            machine_usd=machine.quantize(_CENT),
            disk_usd=disk.quantize(_CENT),
            egress_usd=self.egress_usd.quantize(_CENT),
            wall_hours=self.wall_hours.quantize(_PER_HOUR),
            overhead_ratio=self.overhead_ratio,
            losses_per_hour=self.losses_per_hour,
            checkpoint_interval_s=self.burden.checkpoint_interval_s,
        )


class _Place(NamedTuple):
    """Disk of a node for an hour, moving all data once, and which price of moving that is; equal places have one number."""

    number: int
    disk: Decimal
    moving: Decimal
    words: str


class CostModel:
    """Costs of one work over many offerings; what only place and weather decide is worked out once."""

    def __init__(self, terms: CostTerms, node_count: int) -> None:
        self._terms, self._node_count = terms, node_count
        self._places: dict[tuple[str, str], _Place] = {}
        self._bases: dict[tuple[int, str, int, Decimal | None], CostBasis] = {}
        # Without data to move, all regions of a cloud are one.
        self._numbers: dict[tuple[Decimal, Decimal, str], int] = {}

    def basis(self, offering: Offering) -> CostBasis:
        """Returns the basis of a gang that lies on this offering alone."""
        number = self._place(offering.cloud, offering.region).number
        rate = self._own_rate(offering) if self._terms.interruptions else None
        cell = (offering.accelerator_count, offering.capacity_type.value, number, rate)
        found = self._bases.get(cell)
        if found is None:
            found = self._bases[cell] = self.basis_of((Share(offering=offering, node_count=self._node_count),))
        return found

    @property
    def has_own_rates(self) -> bool:
        """True when losses may differ between offerings of one region and capacity type."""
        return bool(self._terms.interruptions)

    def basis_of(self, shares: Sequence[Share]) -> CostBasis:
        """Returns the basis of a gang; the data is moved once, at the dearest of its places. ``shares``: not empty."""
        places = [self._place(share.offering.cloud, share.offering.region) for share in shares]
        sizes = [share.node_count for share in shares]
        return CostBasis.of(
            self._terms,
            node_count=sum(sizes),
            accelerators=sum(share.offering.accelerator_count * share.node_count for share in shares),
            losses=sum((self.losses_per_node_hour(share.offering) * share.node_count for share in shares), _ZERO),
            is_assumed=any(self._is_assumed(share.offering) for share in shares),
            disk=sum((place.disk * size for place, size in zip(places, sizes, strict=True)), _ZERO),
            moving=max((place.moving, place.words) for place in places),
        )

    def losses_per_node_hour(self, offering: Offering) -> Decimal:
        """Returns how often one node of the offering is lost in an hour, by faults and, on spot, by the cloud's hand."""
        faults = FAULTS_PER_ACCELERATOR_HOUR * offering.accelerator_count
        if offering.capacity_type is not CapacityType.SPOT:
            return faults
        own = self._own_rate(offering) if self._terms.interruptions else None
        return faults + (SPOT_LOSSES_PER_NODE_HOUR if own is None else own)

    def _is_assumed(self, offering: Offering) -> bool:
        return offering.capacity_type is CapacityType.SPOT and (
            not self._terms.interruptions or self._own_rate(offering) is None
        )

    def _own_rate(self, offering: Offering) -> Decimal | None:
        rates, where = self._terms.interruptions, f"{offering.cloud}/{offering.region}"
        for subject in (offering.key, f"{where}//{offering.instance_type}", where, offering.cloud):
            if (rate := rates.get(subject)) is not None:
                return rate
        return None

    def _place(self, cloud: str, region: str) -> "_Place":
        known = self._places.get((cloud, region))
        if known is None:
            terms = self._terms
            moving, words = _ZERO, []
            if terms.data_gib:
                into, word = egress_usd_per_gib(terms.data_at, cloud, region)
                moving += into * terms.data_gib
                words.append(f"in: {word}")
            if terms.output_gib:
                target_cloud, _, target_region = terms.data_at.partition("/")
                back, word = egress_usd_per_gib(f"{cloud}/{region}", target_cloud or "elsewhere", target_region)
                moving += back * terms.output_gib
                words.append(f"back: {word}")
            disk = disk_usd_per_gib_hour(cloud) * terms.disk_gib
            facts = (disk, moving, "; ".join(words))
            known = self._places[cloud, region] = _Place(self._numbers.setdefault(facts, len(self._numbers)), *facts)
        return known
