"""The receipt: how the run ended and what it cost, from the ledger alone."""

from dataclasses import replace

from hostler.lifecycle.events import make_event
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.next_end import is_backup_due
from hostler.lifecycle.next_run import is_job_done, newest_job
from hostler.lifecycle.slots import GIVEN_BACK, unresolved
from hostler.metrics.cost import accrued_usd, node_hours
from hostler.model.enums import LeaseState, NodeState
from hostler.model.lease import LeaseView, Node, Receipt

WHO = "receipt"


def write_receipt(fleet: Fleet, lease_id: str) -> Receipt:
    """Writes (or renews) the receipt and returns it; ``reasons`` names everything that is missing when it is not complete.

    Complete: the job succeeded, the backup is sealed and verified, the cloud said of every node that it is gone, no intent is
    unresolved, and the lease is released. A complete receipt is not written again.

    Raises:
        LeaseNotFoundError: no such lease. StaleWriteError: another writer renewed it at the same time: call again.
    """
    view = fleet.ledger.view(lease_id)
    if view.receipt is not None and view.receipt.is_complete:
        return view.receipt
    now = fleet.ledger.now()
    reasons = missing(view)
    receipt = Receipt(
        lease_id=lease_id,
        written_at=now,
        is_complete=not reasons,
        reasons=reasons,
        cost_usd=accrued_usd(view, now),
        node_hours=node_hours(view, now),
        nodes_launched=len(view.nodes),
        nodes_lost=sum(1 for node in view.nodes if _is_lost(node)),
        row_version=view.receipt.row_version if view.receipt else 0,
    )
    why = "complete" if receipt.is_complete else "; ".join(reasons)
    event = make_event(lease_id, WHO, "receipt.written", why, cost_usd=receipt.cost_usd)
    fleet.crash("write:receipt:before")
    stored = fleet.ledger.write(lease_id, [receipt], [event])[0]
    fleet.crash("write:receipt:after")
    assert isinstance(stored, Receipt)  # noqa: S101 - the ledger returns what it was given
    return replace(receipt, row_version=stored.row_version)


def missing(view: LeaseView) -> tuple[str, ...]:
    """Returns what keeps the run from being complete, in words; empty when nothing does."""
    reasons = []
    if view.lease.failure is not None:
        reasons.append(view.lease.failure)
    if not is_job_done(view):
        job = newest_job(view)
        reasons.append("no job was started" if job is None else f"the job is {job.state}: {job.error or 'not done'}")
    elif is_backup_due(view):
        reasons.append("no backup is sealed and verified since the job's end")
    alive = [node.provider_id for node in view.nodes if node.state is not NodeState.GONE]
    if alive:
        reasons.append(f"the cloud has not said that these are gone: {', '.join(alive)}")
    doubts = [intent.intent_id for intent in unresolved(view)]
    if doubts:
        reasons.append(f"launches without an answer: {', '.join(doubts)}")
    if view.lease.state is not LeaseState.RELEASED:
        reasons.append(f"the lease is {view.lease.state}")
    return tuple(reasons)


def _is_lost(node: Node) -> bool:
    """True for nodes that ended for a fault or were taken: neither released nor given back."""
    reason = node.ending_reason or ""
    return bool(reason) and not reason.startswith((GIVEN_BACK, "release:", "the lease failed:"))
