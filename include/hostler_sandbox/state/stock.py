"""What can be had: stock, quotas and prices. Stock-out comes from an empty pool."""

from decimal import Decimal
from typing import Final

from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.types import DEFAULT_VCPU_QUOTA, TYPES, TypeFacts, list_price

UNLIMITED: Final = None

# Texts: as quoted in public reports of these errors (aws/aws-parallelcluster-node#603, skypilot-org/skypilot#22).
_NO_STOCK: Final = (
    "We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). Our system will be "
    "working on provisioning additional capacity. You can currently get {type} capacity by not specifying an Availability Zone in your "
    "request or choosing {others}."
)
_NO_STOCK_ANYWHERE: Final = (
    "We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). Our system will be "
    "working on provisioning additional capacity."
)


class Stock:
    """Pools by (zone, instance type, capacity type); a pool that was never set is unlimited. Not thread-safe by itself."""

    def __init__(self) -> None:
        self.pools: dict[tuple[str, str, str], int] = {}
        self.prices: dict[tuple[str, str, str], Decimal] = {}
        self.quotas: dict[tuple[str, str, bool], int] = {}

    def price(self, facts: TypeFacts, zone: str, capacity_type: str) -> Decimal:
        """Returns USD per hour now."""
        set_price = self.prices.get((zone, facts.name, capacity_type))
        return list_price(facts, zone, capacity_type) if set_price is None else set_price

    def quota(self, region: str, family: str, *, is_spot: bool) -> int:
        """Returns the vCPU limit of a family's on-demand or spot bucket."""
        return self.quotas.get((region, family, is_spot), DEFAULT_VCPU_QUOTA[family])

    def check_quota(self, facts: TypeFacts, region: str, used_vcpus: int, *, is_spot: bool) -> None:
        """Raises RefusedError when one more machine would pass the vCPU limit."""
        limit = self.quota(region, facts.family, is_spot=is_spot)
        if used_vcpus + facts.vcpu_count <= limit:
            return
        if is_spot:
            raise RefusedError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        raise RefusedError(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket "
            "that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an "
            "adjustment to this limit.",
        )

    def check_spot_price(self, facts: TypeFacts, zone: str, highest: Decimal | None) -> None:
        """Raises RefusedError when the bid is below the spot price."""
        price = self.price(facts, zone, "spot")
        if highest is not None and highest < price:
            raise RefusedError(
                "SpotMaxPriceTooLow",
                f"Your Spot request price of {highest} is lower than the minimum required Spot request fulfillment price of "
                f"{price}.",
            )

    def take(self, facts: TypeFacts, zone: str, capacity_type: str) -> None:
        """Takes one from the pool. Raises RefusedError (HTTP 500, as EC2 answers) when it is empty."""
        unset = 0 if capacity_type == "reserved" else UNLIMITED
        left = self.pools.get((zone, facts.name, capacity_type), unset)
        if left is UNLIMITED:
            return
        if left <= 0 and capacity_type == "reserved":
            text = "The requested reservation does not have sufficient compatible and available capacity for this request."
            raise RefusedError("ReservationCapacityExceeded", text)
        if left <= 0:
            others = [
                f"{zone[:-1]}{letter}"
                for letter in facts.zone_letters
                if self.pools.get((f"{zone[:-1]}{letter}", facts.name, capacity_type), 1) > 0
            ]
            text = _NO_STOCK if others else _NO_STOCK_ANYWHERE
            message = text.format(type=facts.name, zone=zone, others=", ".join(others))
            raise RefusedError("InsufficientInstanceCapacity", message, status=500)
        self.pools[zone, facts.name, capacity_type] = left - 1

    def give_back(self, zone: str, instance_type: str, capacity_type: str) -> None:
        """Puts one back into its pool."""
        key = (zone, instance_type, capacity_type)
        if key in self.pools:
            self.pools[key] += 1


def facts_of(instance_type: str) -> TypeFacts:
    """Returns the facts of a type. Raises RefusedError for an unknown one."""
    if instance_type not in TYPES:
        raise RefusedError("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
    return TYPES[instance_type]
