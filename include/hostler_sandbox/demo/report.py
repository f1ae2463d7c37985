"""The demo's report: from the sandbox's journal and the ledger, not from the Dag's own words; and what must hold of it."""

from decimal import Decimal
from typing import Any, Final

from hostler.metrics.cost import SECONDS_PER_HOUR, accrued_usd
from hostler.model.enums import JobState
from hostler.model.lease import LeaseView

WANTED_ACCURACY: Final = 0.95
_CLOCK_S: Final = 2
"""EC2 tells times in whole seconds, at both ends of a machine's life."""


def make_report(seed: int, figures: dict[str, Any], view: LeaseView, restored_objects: int) -> dict[str, Any]:
    """Returns the report.

    Args:
        figures: of the sandbox's control API. view: the lease at its end.
        restored_objects: how many objects ``hostler restore`` verified and unpacked; 0 when it refused.
    """
    job = view.jobs[-1] if view.jobs else None
    metrics = dict(job.metrics) if job else {}
    ended_at = max((node.ended_at for node in view.nodes if node.ended_at), default=view.lease.created_at)
    return {
        "simulated": True,
        "seed": seed,
        "lease_id": view.lease.lease_id,
        "refusals": figures["refusals"],
        "nodes_launched": figures["nodes_launched"],
        "nodes_lost": figures["nodes_lost"],
        "live_nodes": figures["live_nodes"],
        "job_state": job.state.value if job else "none",
        "accuracy": metrics.get("accuracy"),
        "weights_sha256": job.weights_sha256 if job else None,
        "resumed_steps": job.resumed_from_step if job else 0,
        "backup_verified": bool(view.backups and view.backups[-1].is_verified and restored_objects),
        "backup_uri": view.backups[-1].manifest_uri if view.backups else None,
        "restored_objects": restored_objects,
        "ledger_cost_usd": float(round(accrued_usd(view, ended_at), 4)),
        "journal_cost_usd": float(round(Decimal(figures["cost_usd"]), 4)),
        "receipt_complete": bool(view.receipt and view.receipt.is_complete),
    }


def faults_of(report: dict[str, Any], view: LeaseView) -> list[str]:
    """Returns what is wrong with the report, in words; empty when all is right."""
    wrong = []
    if report["job_state"] != JobState.SUCCEEDED:
        wrong.append(f"the job ended as {report['job_state']}")
    if not report["accuracy"] or report["accuracy"] < WANTED_ACCURACY:
        wrong.append(f"accuracy {report['accuracy']} is below {WANTED_ACCURACY}")
    if not report["weights_sha256"]:
        wrong.append("the job reported no hash of its weights")
    if report["live_nodes"]:
        wrong.append(f"{report['live_nodes']} nodes are left in the cloud")
    if report["nodes_launched"] < view.lease.request.node_count:
        wrong.append(f"only {report['nodes_launched']} nodes were launched")
    if not report["backup_verified"]:
        wrong.append("the backup is not verified")
    if not report["receipt_complete"]:
        wrong.append("the receipt is not complete")
    rates = sum((node.offering.price_usd_per_hour or Decimal(0) for node in view.nodes), Decimal(0))
    allowed = float(rates * _CLOCK_S / SECONDS_PER_HOUR) + 0.0001
    if abs(report["ledger_cost_usd"] - report["journal_cost_usd"]) > allowed:
        wrong.append(f"the ledger says {report['ledger_cost_usd']} USD, the cloud's journal {report['journal_cost_usd']}")
    return wrong
