"""Commands that look and change nothing. They need the ledger, not the clouds."""

import argparse
import json
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from hostler.cli.table import ago, render, usd
from hostler.config.schema import FleetFile
from hostler.ledger.errors import LeaseNotFoundError
from hostler.ledger.port import Ledger
from hostler.metrics.cost import accrued_usd, rate_usd_per_hour
from hostler.model.enums import LeaseState, NodeState
from hostler.model.lease import Lease, LeaseView
from hostler.wiring.settings import open_ledger, read_fleet_file

_ENDED = frozenset({LeaseState.RELEASED})


def status(options: argparse.Namespace) -> int:
    """Prints leases, and spending against limits."""
    fleet = read_fleet_file()
    with open_ledger(fleet) as ledger:
        views = [ledger.view(lease.lease_id) for lease in _leases(ledger, ended=options.all)]
        rows = [_status_row(view, ledger) for view in views]
        if options.json:
            print(json.dumps({"leases": rows, **_spending(ledger, fleet)}, indent=2, default=str))
            return 0
    headings = ("LEASE", "TENANT", "STATE", "REACHED", "NODES", "USD/H", "COST USD", "OF", "WAITING FOR")
    keys = ("lease_id", "tenant", "state", "reached", "nodes", "usd_per_hour", "cost_usd", "max_cost_usd", "waiting_for")
    print(render(headings, [tuple(str(row[key]) for key in keys) for row in rows]))
    with open_ledger(fleet) as ledger:
        spending = _spending(ledger, fleet)
    stopped = "  spending is STOPPED (hostler resume)" if spending["spending_stopped"] else ""
    print(
        f"\n{spending['nodes']} of {spending['max_nodes']} nodes, {spending['usd_per_hour']} of "
        f"{spending['max_usd_per_hour']} USD an hour; mode {fleet.mode}{stopped}"
    )
    return 0


def nodes(options: argparse.Namespace) -> int:
    """Prints every node."""
    with open_ledger(read_fleet_file()) as ledger:
        now = ledger.now()
        views = [ledger.view(lease.lease_id) for lease in _leases(ledger, ended=options.all)]
    shown = [node for view in views for node in view.nodes if options.all or node.state is not NodeState.GONE]
    if options.json:
        print(json.dumps([asdict(node) for node in shown], indent=2, default=str))
        return 0
    headings = ("NODE", "STATE", "HEALTH", "OFFERING", "PROVIDER ID", "ADDRESS", "UP", "USD/H", "NOTES")
    rows = [
        (
            node.node_name,
            node.state.value,
            node.health.value,
            node.offering.key,
            node.provider_id,
            node.address or "-",
            ago(node.launched_at, node.ended_at or now),
            usd(node.offering.price_usd_per_hour),
            "; ".join([*(["leak suspected"] if node.is_leak_suspected else []), *node.health_reasons]),
        )
        for node in shown
    ]
    print(render(headings, rows))
    return 0


def why(options: argparse.Namespace) -> int:
    """Prints what a lease is doing and why, from its record."""
    from hostler.lifecycle.explain import why as explain

    with open_ledger(read_fleet_file()) as ledger:
        view = ledger.view(find_lease(ledger, options.lease).lease_id)
        events = ledger.list_events(view.lease.lease_id, limit=10_000)
        if options.json:
            document = {"view": asdict(view), "events": [asdict(event) for event in events]}
            print(json.dumps(document, indent=2, default=str))
            return 0
        print(explain(view, events))
    return 0


def find_lease(ledger: Ledger, name: str) -> Lease:
    """Returns the lease with this id, or the only one whose id or run id begins so.

    Raises:
        LeaseNotFoundError: none or several; the text names them.
    """
    if not name.strip():
        # Every id begins with nothing: an unset shell variable must not name the only lease there is.
        raise LeaseNotFoundError("the lease's name is empty; `hostler status --all` lists them")
    leases = ledger.list_leases()
    exact = [lease for lease in leases if name in (lease.lease_id, lease.run.run_id)]
    found = exact or [lease for lease in leases if lease.lease_id.startswith(name) or lease.run.run_id.startswith(name)]
    if len(found) != 1:
        several = f"several leases begin with it: {', '.join(lease.lease_id for lease in found)}" if found else "no such lease"
        raise LeaseNotFoundError(f"{name!r}: {several}; `hostler status --all` lists them")
    return found[0]


def _leases(ledger: Ledger, *, ended: bool) -> list[Lease]:
    return [lease for lease in ledger.list_leases() if ended or lease.state not in _ENDED]


def _status_row(view: LeaseView, ledger: Ledger) -> dict[str, Any]:
    lease = view.lease
    live = [node for node in view.nodes if node.state is not NodeState.GONE]
    return {
        "lease_id": lease.lease_id,
        "dag_id": lease.run.dag_id,
        "run_id": lease.run.run_id,
        "tenant": lease.request.tenant,
        "state": lease.state.value,
        "reached": lease.reached or "-",
        "nodes": f"{len(live)}/{lease.request.node_count}",
        "usd_per_hour": usd(rate_usd_per_hour(view)),
        "cost_usd": usd(accrued_usd(view, ledger.now())),
        "max_cost_usd": usd(lease.request.max_cost_usd),
        "waiting_for": lease.wait_reason or lease.failure or "-",
    }


def _spending(ledger: Ledger, fleet: FleetFile) -> dict[str, Any]:
    spending = ledger.spending()
    return {
        "nodes": spending.nodes,
        "max_nodes": fleet.limits.nodes,
        "usd_per_hour": usd(spending.usd_per_hour),
        "max_usd_per_hour": usd(Decimal(fleet.limits.usd_per_hour)),
        "spending_stopped": ledger.is_spending_stopped(),
    }
