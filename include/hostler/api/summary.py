"""The figures above the tables: what the fleet spends against its limits, and how many of what there are."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hostler.api.reader import Snapshot
from hostler.api.rows import Row
from hostler.config.schema import TenantLimits
from hostler.ledger.port import Spending


def summarise(snapshot: Snapshot, leases: Sequence[Row], nodes: Sequence[Row]) -> dict[str, Any]:
    """Returns the figures of a snapshot.

    Args:
        leases, nodes: the rows that the caller may see. The deployment's spending is told to all who may look at the page;
            a tenant's only to those who see one of its leases.
    """
    fleet = snapshot.fleet
    return {
        "deployment": fleet.deployment,
        "mode": fleet.mode.value,
        "is_spending_stopped": snapshot.is_stopped,
        "spending": _against(snapshot.spending, fleet.limits.usd_per_hour, fleet.limits.nodes),
        "tenants": [
            {"tenant": tenant, **_against_own(snapshot.tenants[tenant], fleet.tenants.get(tenant))}
            for tenant in sorted({row.fields["tenant"] for row in leases})
        ],
        "cost_usd": sum((row.fields["cost_usd"] for row in leases), Decimal(0)),
        "leases": _count(leases, "state"),
        "nodes": _count(nodes, "state"),
        "verdicts": _count(nodes, "verdict"),
    }


def _against(spending: Spending, usd_per_hour: Decimal | None, nodes: int | None) -> dict[str, Any]:
    """Returns use beside limits; a limit of None is none."""
    return {
        "usd_per_hour": spending.usd_per_hour,
        "max_usd_per_hour": usd_per_hour,
        "nodes": spending.nodes,
        "max_nodes": nodes,
    }


def _against_own(spending: Spending, limits: TenantLimits | None) -> dict[str, Any]:
    return _against(spending, limits.usd_per_hour if limits else None, limits.nodes if limits else None)


def _count(rows: Sequence[Row], field: str) -> dict[str, int]:
    return dict(Counter(row.fields[field] for row in rows).most_common())
