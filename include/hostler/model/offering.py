"""What can be bought, and the plan that ranks it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from hostler.model.enums import CapacityType


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """An instance type in a zone at a price.

    Attributes:
        accelerator: the short name users type, such as ``H100`` or ``A100-80GB``.
        price_usd_per_hour: price of the whole machine; None means no price is known. Never zero: no price is not free.
        is_available: False when the cloud or a check says that it cannot be bought; kept so that a plan can say why not.
    """

    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity_type: CapacityType
    accelerator: str
    accelerator_count: int
    vcpu_count: int
    memory_mib: int
    price_usd_per_hour: Decimal | None
    is_available: bool = True
    unavailable_reason: str | None = None

    @property
    def key(self) -> str:
        """Identity of the offering: ``cloud/region/zone/instance_type/capacity_type``."""
        return f"{self.cloud}/{self.region}/{self.zone}/{self.instance_type}/{self.capacity_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an offering is not in the plan. ``subject`` is an offering key or a request field."""

    subject: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """Offerings in the order to try them, best first, and the refused ones with reasons. Empty ``offerings``: nothing fits."""

    offerings: tuple[Offering, ...]
    refusals: tuple[Refusal, ...]
    made_at: datetime
