"""Hand-made offerings, requests and terms for the tests of planning."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hostler.ledger.port import StockOut
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering, QuotaUse
from hostler.model.request import NodeRequest

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)

REQUEST = NodeRequest(
    tenant="vision",
    accelerator="H100",
    accelerators_per_node=8,
    node_count=2,
    capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.RESERVED),
    max_cost_usd=Decimal(100),
)

P_CODE, P_SPOT_CODE = "L-417A185B", "L-C4BD4855"


def vcpus(code: str, amount: int, scope: str = "region", unit: str = "vCPU") -> QuotaUse:
    return QuotaUse(code=code, name=f"quota {code}", unit=unit, amount=Decimal(amount), scope=scope)


def offering(zone="us-east-1a", price="55.04", kind=CapacityType.ON_DEMAND, **changes) -> Offering:
    base = Offering(
        cloud="aws",
        region=zone[:-1],
        zone=zone,
        instance_type="p5.48xlarge",
        capacity_type=kind,
        accelerator="H100",
        accelerator_count=8,
        vcpu_count=192,
        memory_mib=2_097_152,
        price_usd_per_hour=None if price is None else Decimal(price),
    )
    return replace(base, **changes)


def spot(zone="us-east-1a", price="20", **changes) -> Offering:
    return offering(zone, price, CapacityType.SPOT, **changes)


def stock_out(subject: str, minutes: int) -> StockOut:
    return StockOut(subject=subject, until=NOW + timedelta(minutes=minutes), count=1, reason="InsufficientInstanceCapacity")


def keys(ranking) -> list[str]:
    return [item.offering.key for item in ranking.ranked]


def zones(ranking) -> list[str]:
    return [item.offering.zone for item in ranking.ranked]


def reason_for(ranking, subject: str) -> str:
    return next(item.reason for item in ranking.refusals if item.subject == subject)
