"""Records as rows of the page: an open list of fields, so that a new field of a record is shown nowhere by itself.

Keys, tokens, scripts, addresses of code and data, options and names of secrets are not among them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from hostler.api.links import AirflowLinks, phase_now
from hostler.metrics.cost import SECONDS_PER_HOUR, accrued_usd, node_seconds, rate_usd_per_hour
from hostler.model.enums import NodeState, Phase, Verdict
from hostler.model.lease import Event, Lease, LeaseView, Node

CENT: Final = Decimal("0.01")
WORST_FIRST: Final = (Verdict.FAILED, Verdict.UNKNOWN, Verdict.DEGRADED, Verdict.HEALTHY)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Attributes:
        dag_id: whose leases it belongs to, for what a caller may see.
        fields: what is shown; also what can be sorted by.
        text: what a filter looks in, lower case.
    """

    dag_id: str
    fields: Mapping[str, Any]
    text: str


def lease_row(view: LeaseView, now: datetime, links: AirflowLinks) -> Row:
    """Returns the row of a lease. ``now``: the ledger's time, for what it cost so far."""
    lease = view.lease
    live = [node for node in view.nodes if node.state is not NodeState.GONE]
    verdicts = Counter(node.health for node in live)
    phase = phase_now(lease)
    job = view.jobs[-1] if view.jobs else None
    fields = {
        "lease_id": lease.lease_id,
        "dag_id": lease.run.dag_id,
        "run_id": lease.run.run_id,
        "tenant": lease.request.tenant,
        "state": lease.state.value,
        "phase": phase.value,
        "accelerators": f"{lease.request.accelerators_per_node} x {lease.request.accelerator}",
        "nodes": len(live),
        "nodes_asked": lease.request.node_count,
        "verdicts": {verdict.value: verdicts[verdict] for verdict in WORST_FIRST if verdicts[verdict]},
        "usd_per_hour": _cents(rate_usd_per_hour(view)),
        "cost_usd": _cents(accrued_usd(view, now)),
        "max_cost_usd": _cents(lease.request.max_cost_usd),
        "job": None if job is None else job.state.value,
        "step": None if job is None else job.step,
        "note": lease.failure or lease.wait_reason or "",
        "is_failed": lease.failure is not None,
        "created_at": lease.created_at,
        "run_url": links.run(lease),
        "log_url": links.task(lease, phase),
    }
    return Row(lease.run.dag_id, fields, _text(fields))


def node_rows(view: LeaseView, now: datetime, links: AirflowLinks, *, with_gone: bool) -> list[Row]:
    """Returns the rows of a lease's nodes. The log that they link to is the job's, once it was time to start one."""
    phase = phase_now(view.lease)
    log = links.task(view.lease, Phase.SETUP if phase in _BEFORE_RUN else Phase.RUN)
    run = links.run(view.lease)
    shown = [node for node in view.nodes if with_gone or node.state is not NodeState.GONE]
    return [_node_row(view.lease, node, now, {"run_url": run, "log_url": log}) for node in shown]


def _node_row(lease: Lease, node: Node, now: datetime, urls: Mapping[str, str | None]) -> Row:
    offering = node.offering
    price = offering.price_usd_per_hour
    seconds = node_seconds(node, now)
    fields = {
        "node_name": node.node_name,
        "lease_id": node.lease_id,
        "tenant": node.tenant,
        "state": node.state.value,
        "verdict": node.health.value,
        "reasons": list(node.health_reasons) or ([] if node.probed_at else ["not probed yet"]),
        "action": node.health_action.value,
        "is_proven": node.is_health_proven,
        "is_cordoned": node.is_cordoned,
        "is_leak_suspected": node.is_leak_suspected,
        "ending_reason": node.ending_reason,
        "cloud": offering.cloud,
        "zone": offering.zone or offering.region,
        "instance_type": offering.instance_type,
        "capacity_type": offering.capacity_type.value,
        "accelerators": f"{offering.accelerator_count} x {offering.accelerator}",
        "provider_id": node.provider_id,
        "up_s": int(seconds // 60 * 60),  # whole minutes: an answer that says the same should be the same
        "usd_per_hour": None if price is None else _cents(price),
        "cost_usd": None if price is None else _cents(price * seconds / SECONDS_PER_HOUR),
        "last_seen_at": node.last_seen_at,
        **urls,
    }
    return Row(lease.run.dag_id, fields, _text(fields))


def lease_story(view: LeaseView, events: tuple[Event, ...], now: datetime, links: AirflowLinks) -> dict[str, Any]:
    """Returns what is known of one lease: its row, the nodes it has or had, and its events, the newest first."""
    lease = view.lease
    return {
        "lease": lease_row(view, now, links).fields,
        "nodes": [row.fields for row in node_rows(view, now, links, with_gone=True)],
        "release_reason": lease.release_reason,
        "is_backed_up": any(backup.is_verified for backup in view.backups),
        "receipt": None if view.receipt is None else {"is_complete": view.receipt.is_complete, "reasons": view.receipt.reasons},
        "events": [
            {"at": event.at, "what": event.what, "why": event.why, "who": event.who, "slot": event.slot_index}
            for event in reversed(events)
        ],
    }


_BEFORE_RUN: Final = frozenset({Phase.ADMIT, Phase.PLAN, Phase.ACQUIRE, Phase.LAUNCH, Phase.SETUP, Phase.VALIDATE})
_NOT_SEARCHED: Final = frozenset({"run_url", "log_url", "created_at", "last_seen_at"})


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT)


def _text(fields: Mapping[str, Any]) -> str:
    """Returns the texts of a row; flags that are set stand there by their name, such as ``cordoned``."""
    words: list[str] = []
    for name, value in fields.items():
        if name in _NOT_SEARCHED:
            continue
        if value is True:
            words.append(name.removeprefix("is_").replace("_", " "))
        elif isinstance(value, str):
            words.append(value)
        elif isinstance(value, list | dict):
            words.extend(value)
    return "\n".join(words).lower()
