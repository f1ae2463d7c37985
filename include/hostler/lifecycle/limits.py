"""Maximum cost and deadline: they bite in every phase, from the ledger alone, whether or not a node can be reached. Pure."""

from datetime import datetime
from decimal import Decimal

from hostler.metrics.cost import SECONDS_PER_HOUR, accrued_usd, rate_usd_per_hour
from hostler.model.lease import LeaseView

LOOK_AHEAD_S = 60
"""What the rate burns in this time is counted as spent: no driver looks less often while nodes run."""


def limit_reached(view: LeaseView, now: datetime) -> str | None:
    """Returns which limit ends the lease now, in words; None while none does."""
    request = view.lease.request
    if request.deadline_at is not None and now >= request.deadline_at:
        return f"deadline: {request.deadline_at.isoformat()} has passed"
    spent, rate = accrued_usd(view, now), rate_usd_per_hour(view)
    if spent + rate * LOOK_AHEAD_S / SECONDS_PER_HOUR >= request.max_cost_usd:
        return f"max_cost_usd: {spent:.2f} USD spent at {rate:.2f} USD per hour, limit {request.max_cost_usd} USD"
    return None


def seconds_left(view: LeaseView, now: datetime) -> float | None:
    """Returns seconds until a limit bites at today's rate, 0 or more; None when nothing costs and there is no deadline."""
    request, rate = view.lease.request, rate_usd_per_hour(view)
    ends = []
    if request.deadline_at is not None:
        ends.append((request.deadline_at - now).total_seconds())
    if rate > 0:
        left = request.max_cost_usd - accrued_usd(view, now)
        ends.append(float(left / rate * SECONDS_PER_HOUR) - LOOK_AHEAD_S)
    return max(0.0, min(ends)) if ends else None


def too_dear(price_usd_per_hour: Decimal, node_count: int, max_cost_usd: Decimal) -> bool:
    """True when the gang would reach its maximum cost before its first look."""
    return price_usd_per_hour * node_count * LOOK_AHEAD_S / SECONDS_PER_HOUR >= max_cost_usd
