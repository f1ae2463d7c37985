"""What a plan is made for beside the request: the work's length and data, where it may lie, how it is mixed and spread."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from hostler.model.capacity import CapacityNow


class Domain(StrEnum):
    """How near to each other the nodes of a gang must be. ``any``: no two need share anything."""

    ZONE = "zone"
    REGION = "region"
    CLOUD = "cloud"
    ANY = "any"

    @property
    def width(self) -> int:
        """0 for a zone, more for what holds more."""
        return tuple(Domain).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTerms:
    """What the true cost of an offering depends on beside its price.

    Attributes:
        useful_hours: length of the work on the whole gang if nothing ever failed; above zero.
        is_length_known: False when ``useful_hours`` is only assumed: then no deadline and no budget is judged by it.
        checkpoint_s: time that one checkpoint stops the work. restore_s: from the loss of a node until the work goes on where
            the checkpoint was: a new machine, its setup, reading the checkpoint. startup_s: from launch to the first step.
        disk_gib: network disk of each node.
        data_gib: read once, from ``data_at``. output_gib: brought back there (checkpoints, results).
        data_at: ``cloud`` or ``cloud/region``; empty when the data lies in no cloud: then bringing it in is free.
        interruptions: chance of a loss of one spot node in an hour, by offering key, ``cloud/region//instance type``,
            ``cloud/region`` or ``cloud``; the narrowest counts. What is not in it has the measured default.
    """

    useful_hours: Decimal = Decimal(24)
    is_length_known: bool = False
    checkpoint_s: Decimal = Decimal(60)
    restore_s: Decimal = Decimal(600)
    startup_s: Decimal = Decimal(900)
    disk_gib: Decimal = Decimal(200)
    data_gib: Decimal = Decimal(0)
    output_gib: Decimal = Decimal(0)
    data_at: str = ""
    interruptions: Mapping[str, Decimal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses what is not a number, below zero or without end.

        Raises:
            ValueError: names the field and what is allowed.
        """
        for name in ("checkpoint_s", "restore_s", "startup_s", "disk_gib", "data_gib", "output_gib"):
            _check(name, getattr(self, name))
        for subject, rate in self.interruptions.items():
            _check(f"interruptions[{subject}]", rate)
        if not self.useful_hours.is_finite() or self.useful_hours <= 0:
            raise ValueError(f"useful_hours {self.useful_hours} is not a number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerms:
    """How to plan. The defaults rank by list price and keep the gang in one zone.

    Attributes:
        accelerators: any of these will do; empty means the request's own alone.
        costs: None ranks by list price.
        preferred_regions: regions, ``cloud/region`` or clouds that are worth ``preference_ratio`` more than the others.
        zones: the only zones allowed; empty means all. excluded: clouds, regions, ``cloud/region`` or zones never used.
        needs_interconnect: only types with a known fast interconnect between machines.
        domain: what all nodes of the gang must share.
        steady_count: nodes that no interruption may take: on-demand or reserved. 0 to the gang's size.
        spread: how many of ``spread_over`` the nodes are dealt to evenly, so that the loss of one takes at most its share; 1
            spreads nothing.
        max_total_usd: highest true cost of the whole work; None means any. Judged when the work's length is known.
        capacity: quotas, reservations, open spot requests, spending.
    """

    accelerators: tuple[str, ...] = ()
    costs: CostTerms | None = None
    preferred_regions: tuple[str, ...] = ()
    preference_ratio: Decimal = Decimal("0.1")
    zones: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    needs_interconnect: bool = False
    domain: Domain = Domain.ZONE
    steady_count: int = 0
    spread: int = 1
    spread_over: Domain = Domain.ZONE
    max_total_usd: Decimal | None = None
    capacity: CapacityNow = field(default_factory=CapacityNow)

    def __post_init__(self) -> None:
        """Refuses terms that contradict each other.

        Raises:
            ValueError: names the field and what is allowed.
        """
        _check("preference_ratio", self.preference_ratio)
        if self.max_total_usd is not None and not (self.max_total_usd.is_finite() and self.max_total_usd > 0):
            raise ValueError(f"max_total_usd {self.max_total_usd} is not a number above 0")
        if self.steady_count < 0:
            raise ValueError(f"steady_count {self.steady_count} is below 0")
        if self.spread < 1:
            raise ValueError(f"spread {self.spread} is below 1")
        if self.spread > 1 and self.spread_over.width >= self.domain.width:
            raise ValueError(
                f"spread {self.spread} over {self.spread_over}s and domain {self.domain} contradict each other: "
                f"the domain must be wider than a {self.spread_over}"
            )


def _check(name: str, value: Decimal) -> None:
    if not value.is_finite() or value < 0:
        raise ValueError(f"{name} {value} is not a number of 0 or more")
