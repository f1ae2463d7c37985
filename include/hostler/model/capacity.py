"""What can be known of capacity before buying: quotas with their use, reservations, spot requests that are still open, spending."""

from dataclasses import dataclass
from decimal import Decimal

from hostler.model.offering import QuotaUse


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaState:
    """One quota of the cloud as it was read.

    Attributes:
        region: empty for a quota that holds in all regions together.
        code: the cloud's own id, as in ``QuotaUse.code``. unit: the cloud's own; amounts of two units are never compared.
        limit, used: in ``unit``, 0 or more; None when the reading failed (throttled, denied): then nothing is known, and that
            refuses nothing.
    """

    cloud: str
    region: str
    code: str
    unit: str
    limit: Decimal | None
    used: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Capacity that is kept for us in one zone.

    Attributes:
        total_count, used_count: machines; 0 or more.
    """

    reservation_id: str
    cloud: str
    region: str
    zone: str
    instance_type: str
    total_count: int
    used_count: int = 0

    @property
    def free_count(self) -> int:
        """Machines that can still be started in it; never below 0."""
        return max(0, self.total_count - self.used_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSpotRequest:
    """A spot request that the cloud has neither filled nor refused: it may become machines at any moment.

    Attributes:
        node_count: machines that are still to come. price_usd_per_hour: of one machine; None when not known.
        quotas: what one machine takes, as in the offering. A quota's ``used`` is understood not to hold it yet.
    """

    request_id: str
    cloud: str
    region: str
    node_count: int
    price_usd_per_hour: Decimal | None = None
    quotas: tuple[QuotaUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityNow:
    """All that is known of capacity at the moment of planning. The defaults know nothing and refuse nothing.

    Attributes:
        reservations: None when they were not read: then offerings of capacity type ``reserved`` are not checked.
        max_usd_per_hour: the cap on spending; None means none. spent_usd_per_hour: what runs already.
    """

    quotas: tuple[QuotaState, ...] = ()
    reservations: tuple[Reservation, ...] | None = None
    open_spot_requests: tuple[OpenSpotRequest, ...] = ()
    max_usd_per_hour: Decimal | None = None
    spent_usd_per_hour: Decimal = Decimal(0)
