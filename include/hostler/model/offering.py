"""What can be bought, and the plan that ranks it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from hostler.model.enums import CapacityType


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What one machine takes of one quota of the cloud; an offering may count against several.

    Attributes:
        code: the cloud's own id of the quota. name: what its console shows. unit: the cloud's own, such as ``vCPU``.
        amount: what one machine takes, in ``unit``. scope: where the limit holds: ``region`` or ``global``.
    """

    code: str
    name: str
    unit: str
    amount: Decimal
    scope: str = "region"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """An instance type in a zone at a price.

    Attributes:
        accelerator: the short name users type, such as ``H100`` or ``A100-80GB``.
        price_usd_per_hour: price of the whole machine (host and accelerators), in USD; None means no price is known. Never
            zero: no price is not free.
        is_available: False when the cloud or a check says that it cannot be bought; kept so that a plan can say why not.
        currency, price_in_currency_per_hour: the price as the source gave it, before conversion; None when it gave none.
        price_source: where the price comes from (file and line, or the price API); empty when it is not told.
        priced_at: when that source was taken; None when it does not say.
        accelerator_memory_mib: of one accelerator; None when not known. network_mbps, nic_count, local_nvme_gib: of the
            machine; None when not known. interconnect: between machines, such as ``EFA`` or ``InfiniBand``; empty: none known.
        quotas: what one machine takes of each quota; empty when not known.
        doubts: why the price should not be trusted unseen, such as two sources that disagree; empty when there is none.
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
    currency: str = "USD"
    price_in_currency_per_hour: Decimal | None = None
    price_source: str = ""
    priced_at: datetime | None = None
    accelerator_memory_mib: int | None = None
    network_mbps: int | None = None
    nic_count: int | None = None
    local_nvme_gib: int | None = None
    interconnect: str = ""
    quotas: tuple[QuotaUse, ...] = ()
    doubts: tuple[str, ...] = ()

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
