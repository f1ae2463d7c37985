"""Maximum cost and deadline: they bite in every phase, from the ledger alone, whether or not a node can be reached. Pure."""

from datetime import datetime, timedelta
from decimal import Decimal

from hostler.metrics.cost import SECONDS_PER_HOUR, accrued_usd, rate_usd_per_hour
from hostler.model.lease import LeaseView, Node

LOOK_AHEAD_S = 60
"""What the rate burns in this time is counted as spent: no driver looks less often while nodes run."""

EXPIRY_SLACK_S = 30
"""The dead man's switch fires this long after a release by the lease's limits would have begun. That begins with a minute's
cost in hand (``LOOK_AHEAD_S``), so a node that nobody drives any more ends itself within the lease's cost cap.
"""


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


def switched_off_at(view: LeaseView, node: Node) -> datetime | None:
    """Returns when the dead man's switch of a node has fired at the latest, nobody having spoken to it since its last sign of
    life; None when no job of ours ever set it, or no limit did.
    """
    if node.heartbeat_at is None or not any(node.node_name in job.node_names for job in view.jobs):
        return None
    left_s = seconds_left(view, node.heartbeat_at)
    return None if left_s is None else node.heartbeat_at + timedelta(seconds=left_s + EXPIRY_SLACK_S)


def too_dear(price_usd_per_hour: Decimal, node_count: int, max_cost_usd: Decimal) -> bool:
    """True when the gang would reach its maximum cost before its first look."""
    return price_usd_per_hour * node_count * LOOK_AHEAD_S / SECONDS_PER_HOUR >= max_cost_usd
