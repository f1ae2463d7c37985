"""Accrued cost and current rate of a lease, from the ledger alone.

A machine bills from ``launched_at`` to ``ended_at``, without the time that the cloud says it was stopped; the end is the
cloud's word, so a node that is merely believed to be gone goes on costing. One that never came to run costs nothing. An intent
that may have become a machine counts in the rate, not in the sum: nothing is known of it.
"""

from datetime import datetime
from decimal import Decimal

from hostler.model.enums import IntentState, NodeState
from hostler.model.lease import LeaseView, Node

SECONDS_PER_HOUR = Decimal(3600)
CENT_FRACTION = Decimal("0.000001")


def node_seconds(node: Node, now: datetime) -> Decimal:
    """Returns the seconds that a node has billed so far, 0 or more; a clock that runs behind the launch gives 0."""
    if node.has_failed_start:
        return Decimal(0)
    ends = [end for end in (node.ended_at, node.stopped_at) if end is not None]
    seconds = (min(ends, default=now) - node.launched_at).total_seconds() - node.stopped_s
    return max(Decimal(0), Decimal(str(seconds)))


def is_billing(node: Node) -> bool:
    """True while the machine itself costs, for all that the cloud has said; its disks cost on while it is stopped."""
    return node.state is not NodeState.GONE and node.ended_at is None and node.stopped_at is None


def accrued_usd(view: LeaseView, now: datetime) -> Decimal:
    """Returns what the lease's machines have cost until ``now``, in USD, rounded to a millionth.

    An offering without a price is never bought (``insert_intent`` refuses it), so it adds nothing here.
    """
    total = sum(
        ((node.offering.price_usd_per_hour or Decimal(0)) * node_seconds(node, now) / SECONDS_PER_HOUR for node in view.nodes),
        Decimal(0),
    )
    return total.quantize(CENT_FRACTION)


def rate_usd_per_hour(view: LeaseView) -> Decimal:
    """Returns what the lease costs an hour now: nodes that are not gone, and intents that may be machines."""
    named = {node.intent_id for node in view.nodes}
    nodes = [node.offering for node in view.nodes if is_billing(node)]
    maybe = [
        intent.offering for intent in view.intents if intent.state is not IntentState.REFUSED and intent.intent_id not in named
    ]
    return sum((offering.price_usd_per_hour or Decimal(0) for offering in nodes + maybe), Decimal(0))


def node_hours(view: LeaseView, now: datetime) -> Decimal:
    """Returns machine-hours of the lease, rounded to a millionth."""
    seconds = sum((node_seconds(node, now) for node in view.nodes), Decimal(0))
    return (seconds / SECONDS_PER_HOUR).quantize(CENT_FRACTION)
