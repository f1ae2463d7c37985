"""Whether the caps leave room for a whole gang now: asked before any intent is written. The ledger has the last word."""

from decimal import Decimal

from hostler.ledger.port import Caps, Ledger
from hostler.model.offering import Offering


def no_room(ledger: Ledger, caps: Caps, tenant: str, offering: Offering, node_count: int) -> str | None:
    """Returns which cap leaves no room for so many nodes of the offering, in words; None when all do."""
    everyone, own = ledger.spending(), ledger.spending(tenant)
    asked = (offering.price_usd_per_hour or Decimal(0)) * node_count
    checks: tuple[tuple[str, Decimal | int | None, Decimal | int, Decimal | int], ...] = (
        ("usd_per_hour", caps.usd_per_hour, everyone.usd_per_hour, asked),
        ("nodes", caps.nodes, everyone.nodes, node_count),
        ("tenant_usd_per_hour", caps.tenant_usd_per_hour, own.usd_per_hour, asked),
        ("tenant_nodes", caps.tenant_nodes, own.nodes, node_count),
    )
    for limit, cap, used, more in checks:
        if cap is not None and used + more > cap:
            return f"{limit}: cap {cap}, in use {used}, asked {more}; waiting for room"
    return None
