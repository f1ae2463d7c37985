"""What a person is told: what happened, on what evidence, what it costs, and the command to run. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from hostler.ledger.errors import LedgerError
from hostler.ledger.port import Ledger
from hostler.metrics.cost import accrued_usd, rate_usd_per_hour
from hostler.model.lease import Event

_COMMANDS: Final = (
    ("prices.", "hostler prices"),
    ("reap.", "hostler reap --dry-run"),
    ("spending.stopped", "hostler resume"),
    ("cost_sweep.", "hostler adopt --dry-run"),
    ("node.end_refused", "hostler reap --dry-run"),
)
"""Beginning of a verb -> what to run where the event names no lease, or where the lease's own story says less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that a person is told.

    Attributes:
        what: the event's verb, or ``dag.failed`` and the like. why: in words. evidence: name and value pairs; never a secret.
        cost_usd, usd_per_hour: of the lease until ``at``, and now; None when it names none, or it could not be asked.
        command: what to run first. link: a page about it; None when there is none.
        sequence: of the event in the ledger; 0 for what is not from there.
    """

    deployment: str
    at: datetime
    what: str
    why: str
    who: str
    command: str
    lease_id: str | None = None
    evidence: tuple[tuple[str, str], ...] = ()
    cost_usd: Decimal | None = None
    usd_per_hour: Decimal | None = None
    link: str | None = None
    sequence: int = 0


def notice_of(event: Event, ledger: Ledger, deployment: str) -> Notice:
    """Returns the notice of an event, with what its lease costs."""
    cost_usd, usd_per_hour = cost_of(ledger, event.lease_id)
    return Notice(
        deployment=deployment,
        at=event.at,
        what=event.what,
        why=event.why,
        who=event.who,
        command=command_for(event.what, event.lease_id),
        lease_id=event.lease_id,
        evidence=event.evidence,
        cost_usd=cost_usd,
        usd_per_hour=usd_per_hour,
        sequence=event.sequence,
    )


def cost_of(ledger: Ledger, lease_id: str | None) -> tuple[Decimal | None, Decimal | None]:
    """Returns USD so far and USD an hour of a lease; None for both when there is none, or the ledger does not tell."""
    if lease_id is None:
        return None, None
    try:
        view, now = ledger.view(lease_id), ledger.now()
    except LedgerError:
        return None, None
    return accrued_usd(view, now), rate_usd_per_hour(view)


def command_for(what: str, lease_id: str | None) -> str:
    """Returns the command that a person runs first."""
    found = next((command for start, command in _COMMANDS if what.startswith(start)), None)
    if found is not None:
        return found
    return f"hostler why {lease_id}" if lease_id else "hostler status"


def title(notices: Sequence[Notice]) -> str:
    """Returns one line for all, safe as a mail's subject."""
    first = notices[0]
    more = f" and {len(notices) - 1} more" if len(notices) > 1 else ""
    return " ".join(f"[hostler {first.deployment}] {first.what}{more}: {first.why}".split())[:150]


def text(notice: Notice) -> str:
    """Returns the notice as plain lines."""
    lines = [f"{notice.what}: {notice.why}", f"when: {notice.at.isoformat()}  by: {notice.who}"]
    if notice.lease_id:
        lines.append(f"lease: {notice.lease_id}")
    if notice.evidence:
        lines.append("evidence: " + ", ".join(f"{name}={value}" for name, value in notice.evidence))
    lines += [f"cost: {cost_words(notice)}", f"run: {notice.command}"]
    return "\n".join([*lines, *([f"see: {notice.link}"] if notice.link else [])])


def cost_words(notice: Notice) -> str:
    """Returns what it costs; unknown is said, never 0."""
    if notice.lease_id is None:
        return "no lease is named"
    if notice.cost_usd is None or notice.usd_per_hour is None:
        return "unknown: the ledger did not tell"
    return f"{notice.cost_usd:.2f} USD so far, {notice.usd_per_hour:.2f} USD an hour now"


def document(notices: Sequence[Notice]) -> bytes:
    """Returns the JSON document that a webhook is posted."""
    return json.dumps(
        {"version": 1, "deployment": notices[0].deployment, "events": [_row(item) for item in notices]}, separators=(",", ":")
    ).encode()


def _row(item: Notice) -> dict[str, Any]:
    return {
        "sequence": item.sequence,
        "at": item.at.isoformat(),
        "lease_id": item.lease_id,
        "who": item.who,
        "what": item.what,
        "why": item.why,
        "evidence": dict(item.evidence),
        "cost_usd": None if item.cost_usd is None else f"{item.cost_usd:.2f}",
        "usd_per_hour": None if item.usd_per_hour is None else f"{item.usd_per_hour:.2f}",
        "command": item.command,
        "link": item.link,
    }
