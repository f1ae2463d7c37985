"""The serialised step that adds an intent: fence, lease, slot and caps are looked at and kept in one transaction."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Select, and_, exists, func, not_, or_, select, update

from hostler.ledger import rules
from hostler.ledger.errors import LeaseNotFoundError
from hostler.ledger.port import Caps, Spending
from hostler.ledger.rules import Attempt
from hostler.model.enums import IntentState, LeaseState, NodeState
from hostler.model.lease import Fence, Intent
from hostler.stores.tables import intents, leases, nodes, switches

SPENDING_SWITCH = "spending_stopped"


def lock_lease(connection: Connection, lease_id: str, fence: Fence | None) -> LeaseState:
    """Keeps every other writer of the lease, and every taker of a fence, out until the transaction's end.

    Returns:
        The lease's state.

    Raises:
        LeaseNotFoundError: no such lease. FenceLostError: the fence is given and is not the newest.
    """
    wanted = select(leases.c.state, leases.c.fence).where(leases.c.lease_id == lease_id).with_for_update()
    row = connection.execute(wanted).one_or_none()
    if row is None:
        raise LeaseNotFoundError(f"no lease {lease_id!r}")
    if fence is not None:
        rules.check_fence(lease_id, row.fence, fence)
    return LeaseState(row.state)


def check_purchase(connection: Connection, intent: Intent, fence: Fence, caps: Caps) -> None:
    """Raises unless the intent may be written now; see the port. The caller holds the lock PURCHASE."""
    state = lock_lease(connection, intent.lease_id, fence)
    rules.check_is_open(intent.lease_id, state, is_spending_stopped=is_stopped(connection))
    rules.check_slot_is_free(intent, _earlier(connection, intent))
    everyone, tenant = _spending_of_both(connection, intent.tenant)
    rules.check_caps(intent, caps, everyone, tenant)


def is_stopped(connection: Connection) -> bool:
    """True when purchases are stopped for the whole deployment."""
    found = connection.scalar(select(switches.c.is_on).where(switches.c.name == SPENDING_SWITCH))
    return bool(found)


def spending_of(connection: Connection, tenant: str | None) -> Spending:
    """Returns what counts against caps, of a tenant or (None) of all."""
    wanted = select(func.coalesce(func.sum(intents.c.usd_per_hour), 0), func.count()).where(intents.c.is_live)
    if tenant is not None:
        wanted = wanted.where(intents.c.tenant == tenant)
    usd_per_hour, count = connection.execute(wanted).one()
    return Spending(usd_per_hour=Decimal(usd_per_hour), nodes=count)


def count_live(connection: Connection, lease_id: str, intent_ids: Iterable[str]) -> None:
    """Sets again which of the intents count against caps, after they or their nodes were written."""
    ids = sorted(set(intent_ids))
    if not ids:
        return
    gone = exists().where(
        nodes.c.lease_id == intents.c.lease_id, nodes.c.intent_id == intents.c.intent_id, nodes.c.state == NodeState.GONE.value
    )
    over = or_(intents.c.state == IntentState.REFUSED.value, and_(intents.c.state == IntentState.OWNED.value, gone))
    mine = and_(intents.c.lease_id == lease_id, intents.c.intent_id.in_(ids))
    connection.execute(update(intents).where(mine).values(is_live=not_(over)))


def _earlier(connection: Connection, intent: Intent) -> tuple[Attempt, ...]:
    wanted: Select[Any] = select(intents.c.attempt, intents.c.state, intents.c.is_live).where(
        intents.c.lease_id == intent.lease_id, intents.c.slot_index == intent.slot_index
    )
    rows = connection.execute(wanted)
    return tuple(Attempt(attempt=row.attempt, state=IntentState(row.state), is_live=row.is_live) for row in rows)


def _spending_of_both(connection: Connection, tenant: str) -> tuple[Spending, Spending]:
    return spending_of(connection, None), spending_of(connection, tenant)
