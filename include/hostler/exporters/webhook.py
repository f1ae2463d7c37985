"""Tells a person by a signed post what needs one. The event log stays the record; this is only the bell.

The body is one JSON document a call: ``{"version": 1, "deployment": ..., "events": [...]}``, each event with sequence, at,
lease_id, who, what, why and evidence. ``X-Hostler-Signature: sha256=<hex>`` is the
HMAC-SHA256 of the body under the shared secret.
"""

import hashlib
import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Final

from hostler.ledger.port import Ledger
from hostler.model.lease import Event

NEEDS_A_PERSON: Final = (
    "backup.damaged",
    "backup.drill_failed",
    "backup.failed",
    "backup.unknown",
    "job.failed",
    "lease.deadline_at_risk",
    "ledger.restored",
    "lease.failed",
    "node.end_refused",
    "prices.refused",
    "reap.",
    "request.refused",
    "run.late",
    "spending.stopped",
)
"""Verbs of events that somebody is told of; an event whose verb begins so counts too."""

_WATERMARK: Final = "notified_sequence"
_BATCH: Final = 200
_TIMEOUT_S: Final = 10.0


class NotifyError(Exception):
    """The receiver could not be reached or refused: the watermark stays, the next call tells again."""


def notify(ledger: Ledger, *, deployment: str, url: str, secret: str | None) -> int:
    """Posts the events since the last successful post that need a person.

    Args:
        ledger: where events and the watermark are. url: http(s) address of the receiver.
        secret: signs the post; None sends it unsigned.

    Returns:
        How many events were told; 0 makes no call.

    Raises:
        NotifyError: nothing was lost; call again later.
    """
    after = int(ledger.get_meta(_WATERMARK) or 0)
    told = 0
    while events := ledger.list_events(None, after=after, limit=_BATCH):
        urgent = [event for event in events if event.what.startswith(NEEDS_A_PERSON)]
        if urgent:
            _post(url, _body(deployment, urgent), secret)
            told += len(urgent)
        after = events[-1].sequence
        ledger.set_meta(_WATERMARK, str(after))
    return told


def signature(body: bytes, secret: str) -> str:
    """Returns the value of ``X-Hostler-Signature`` for a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _body(deployment: str, events: Sequence[Event]) -> bytes:
    rows = [
        {
            "sequence": event.sequence,
            "at": event.at.isoformat(),
            "lease_id": event.lease_id,
            "who": event.who,
            "what": event.what,
            "why": event.why,
            "evidence": dict(event.evidence),
        }
        for event in events
    ]
    return json.dumps({"version": 1, "deployment": deployment, "events": rows}, separators=(",", ":")).encode()


def _post(url: str, body: bytes, secret: str | None) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "hostler"}
    if secret is not None:
        headers["X-Hostler-Signature"] = signature(body, secret)
    if not url.startswith(("http://", "https://")):
        raise NotifyError("notify.webhook_url: allowed are http:// and https://")
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310  # checked above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310  # checked above
            answer.read(1)
    except (urllib.error.URLError, OSError) as error:
        raise NotifyError(f"notify.webhook_url: {getattr(error, 'reason', error)}") from error
