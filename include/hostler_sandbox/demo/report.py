"""The demo's report: from the sandbox's journal and the ledger, not from the Dag's own words; and what must hold of it."""

from decimal import Decimal
from typing import Any, Final

from hostler.metrics.cost import SECONDS_PER_HOUR, accrued_usd
from hostler.model.enums import JobState
from hostler.model.lease import LeaseView
from hostler_sandbox.demo.loss import redone_steps

WANTED_ACCURACY: Final = 0.95
_CLOCK_S: Final = 2
"""EC2 tells times in whole seconds, at both ends of a machine's life."""

_NOTICE_S: Final = 15
"""EC2 tells no time when it takes a machine: the ledger counts it until it has seen that it is gone."""


def make_report(
    seed: int, figures: dict[str, Any], view: LeaseView, *, restored_objects: int, undisturbed_sha256: str
) -> dict[str, Any]:
    """Returns the report.

    Args:
        figures: of the sandbox's control API. view: the lease at its end.
        restored_objects: how many objects ``hostler restore`` verified and unpacked; 0 when it refused.
        undisturbed_sha256: weights of the same training on this machine, without a cloud and without a loss.
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
        "undisturbed_weights_sha256": undisturbed_sha256,
        "resumed_steps": job.resumed_from_step if job else 0,
        "redone_steps": redone_steps(view),
        "checkpoint_interval_steps": view.lease.request.checkpoint_interval_steps,
        "backup_verified": bool(view.backups and view.backups[-1].is_verified and restored_objects),
        "backup_uri": view.backups[-1].manifest_uri if view.backups else None,
        "restored_objects": restored_objects,
        "ledger_cost_usd": float(round(accrued_usd(view, ended_at), 4)),
        "journal_cost_usd": float(round(Decimal(figures["cost_usd"]), 4)),
        "receipt_complete": bool(view.receipt and view.receipt.is_complete),
    }


def faults_of(report: dict[str, Any], view: LeaseView) -> list[str]:
    """Returns what is wrong with the report, in words; empty when all is right."""
    left, interval = report["live_nodes"], report["checkpoint_interval_steps"]
    ledger, journal = report["ledger_cost_usd"], report["journal_cost_usd"]
    prices = [node.offering.price_usd_per_hour or Decimal(0) for node in view.nodes]
    rates, dearest = sum(prices, Decimal(0)), max(prices, default=Decimal(0))
    below = float(rates * _CLOCK_S / SECONDS_PER_HOUR) + 0.0001
    above = below + report["nodes_lost"] * float(dearest * _NOTICE_S / SECONDS_PER_HOUR)
    must_hold = (
        (report["job_state"] == JobState.SUCCEEDED, f"the job ended as {report['job_state']}"),
        ((report["accuracy"] or 0) >= WANTED_ACCURACY, f"accuracy {report['accuracy']} is below {WANTED_ACCURACY}"),
        (bool(report["weights_sha256"]), "the job reported no hash of its weights"),
        (
            report["weights_sha256"] == report["undisturbed_weights_sha256"],
            f"the weights are not those of an undisturbed training ({report['undisturbed_weights_sha256']})",
        ),
        (report["nodes_lost"] >= 1, "no node was lost"),
        (report["redone_steps"] <= interval, f"{report['redone_steps']} steps were redone, more than {interval}"),
        (left == 0, f"{left} nodes are left in the cloud"),
        (
            report["nodes_launched"] > view.lease.request.node_count,
            f"only {report['nodes_launched']} nodes were launched: the lost one was not replaced",
        ),
        (report["backup_verified"], "the backup is not verified"),
        (report["receipt_complete"], "the receipt is not complete"),
        (-below <= ledger - journal <= above, f"the ledger says {ledger} USD, the cloud's journal {journal}"),
    )
    return [words for holds, words in must_hold if not holds]
