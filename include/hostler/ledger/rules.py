"""What every ledger checks before it writes. Pure: no store, no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from hostler.ledger.errors import FenceLostError, LeaseClosedError, LimitExceededError, StaleWriteError
from hostler.ledger.port import Caps, Spending
from hostler.model.enums import IntentState, LeaseState, NodeState
from hostler.model.lease import Backup, Fence, Intent, Job, Lease, Node, Receipt, Record
from hostler.model.transitions import check_lease_move, check_node_move

CLOSED_STATES: Final = frozenset({LeaseState.DRAINING, LeaseState.RELEASED, LeaseState.EXPIRED, LeaseState.LOST})
"""Lease states in which nothing more is bought."""

FIRST_ATTEMPT: Final = 1
"""Number of a slot's first intent."""

RecordKey = tuple[str, str]
"""Kind and name of a record; unique within a lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An earlier intent of a slot, as far as the next one depends on it.

    Attributes:
        is_live: it may be, or become, a running machine.
    """

    attempt: int
    state: IntentState
    is_live: bool


def record_key(record: Record) -> RecordKey:
    """Returns kind and name of a record."""
    match record:
        case Lease():
            return "lease", record.lease_id
        case Intent():
            return "intent", record.intent_id
        case Node():
            return "node", record.node_name
        case Job():
            return "job", record.job_id
        case Backup():
            return "backup", record.backup_id
        case Receipt():
            return "receipt", record.lease_id


def is_live(state: IntentState, nodes: Iterable[NodeState]) -> bool:
    """True when an intent counts against caps.

    Args:
        nodes: states of the nodes that came of the intent.
    """
    if state is IntentState.OWNED:
        return NodeState.GONE not in tuple(nodes)
    return state is not IntentState.REFUSED


def check_fence(lease_id: str, newest: int, fence: Fence) -> None:
    """Raises FenceLostError unless the fence is the lease's newest."""
    if fence.lease_id != lease_id or fence.token != newest:
        raise FenceLostError(f"lease {lease_id}: fence {fence.token} of {fence.holder} is void, {newest} is the newest")


def check_is_open(lease_id: str, state: LeaseState, *, is_spending_stopped: bool) -> None:
    """Raises LeaseClosedError when nothing may be bought for the lease."""
    if state in CLOSED_STATES:
        raise LeaseClosedError(f"lease {lease_id} is {state}: nothing more is bought for it")
    if is_spending_stopped:
        raise LeaseClosedError("purchases are stopped for the whole deployment (`hostler resume` lifts it)")


def check_slot_is_free(intent: Intent, earlier: Iterable[Attempt]) -> None:
    """Raises StaleWriteError unless the intent is the slot's next and nothing of the slot is live.

    Args:
        earlier: all intents of the slot, in any order.
    """
    attempts = tuple(earlier)
    expected = max((row.attempt for row in attempts), default=FIRST_ATTEMPT - 1) + 1
    if intent.attempt != expected:
        raise StaleWriteError(f"slot {intent.slot_index}: intent {intent.attempt} asked for, {expected} is the next")
    for row in attempts:
        if row.is_live:
            raise StaleWriteError(f"slot {intent.slot_index}: intent {row.attempt} is {row.state} and not known to be gone")


def check_caps(intent: Intent, caps: Caps, everyone: Spending, tenant: Spending) -> None:
    """Raises LimitExceededError when the purchase would pass a cap or has no known price.

    Args:
        everyone, tenant: what counts now, without the intent.
    """
    price = intent.offering.price_usd_per_hour
    if price is None:
        raise LimitExceededError(f"{intent.offering.key} has no known price: no cap can hold", limit="usd_per_hour")
    _hold("usd_per_hour", caps.usd_per_hour, everyone.usd_per_hour, price)
    _hold("nodes", caps.nodes, everyone.nodes, 1)
    _hold("tenant_usd_per_hour", caps.tenant_usd_per_hour, tenant.usd_per_hour, price)
    _hold("tenant_nodes", caps.tenant_nodes, tenant.nodes, 1)


def next_call(full_at_s: float, now_s: float, *, calls_per_s: float, burst: float) -> tuple[float, float]:
    """Returns (when the account's bucket would be full again after this call, seconds to wait); the first holds when the
    second is 0.

    Args:
        full_at_s: as returned by the last call that was let through; 0 before the first. now_s: the ledger's clock.
    """
    after = max(full_at_s, now_s) + 1 / calls_per_s
    wait_s = after - now_s - burst / calls_per_s
    return after, max(0.0, wait_s)


def stage(lease_id: str, records: Iterable[Record], rows: Mapping[RecordKey, Record]) -> tuple[Record, ...]:
    """Returns the records as they are to be stored, in order, with their next row_version.

    Args:
        rows: what is stored of them now; a missing key is a new record.

    Raises:
        StaleWriteError: a record was read at another version than is stored, or must not be made by ``write``.
        IllegalTransitionError: a move that the tables do not have.
        ValueError: a record of another lease.
    """
    now = dict(rows)
    staged = []
    for record in records:
        key = record_key(record)
        now[key] = _staged(lease_id, record, now.get(key))
        staged.append(now[key])
    return tuple(staged)


def _hold(limit: str, cap: Decimal | int | None, used: Decimal | int, asked: Decimal | int) -> None:
    if cap is not None and used + asked > cap:
        raise LimitExceededError(f"{limit}: cap {cap}, in use {used}, asked {asked}", limit=limit)


def _staged(lease_id: str, record: Record, before: Record | None) -> Record:
    if record.lease_id != lease_id:
        raise ValueError(f"record of lease {record.lease_id} in a write to {lease_id}")
    found = 0 if before is None else before.row_version
    if record.row_version != found:
        raise StaleWriteError(f"{record_key(record)}: read at version {record.row_version}, is at {found}")
    if before is None and isinstance(record, Intent | Lease):
        raise StaleWriteError(f"{record_key(record)}: does not exist; intents come by insert_intent, leases by admit")
    if isinstance(record, Lease) and isinstance(before, Lease):
        check_lease_move(before.state, record.state)
        return replace(record, row_version=found + 1, fence=before.fence)
    if isinstance(record, Node) and isinstance(before, Node):
        check_node_move(before.state, record.state)
    return replace(record, row_version=found + 1)
