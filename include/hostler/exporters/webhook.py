"""Tells people what needs one, by channels. The event log stays the record; this is only the bell.

A webhook's body is one JSON document a call: ``{"version": 1, "deployment": ..., "events": [...]}``, each event with sequence,
at, lease_id, who, what, why, evidence, cost_usd, usd_per_hour and command. ``X-Hostler-Signature: sha256=<hex>`` is the
HMAC-SHA256 of the body under the shared secret.
"""

from typing import Final

from hostler.exporters.channels import Channel, NotifyError, WebhookChannel, signature
from hostler.exporters.notice import notice_of
from hostler.ledger.port import Ledger
from hostler.ledger.urgent import NEEDS_A_PERSON

__all__ = ["NEEDS_A_PERSON", "NotifyError", "notify", "ring", "signature"]

_WATERMARK: Final = "notified_sequence"
_BATCH: Final = 200


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
    channel = WebhookChannel(name="", url=url, secret=secret, called="notify.webhook_url")
    return ring(ledger, channel, deployment=deployment, watermark=_WATERMARK)


def ring(ledger: Ledger, channel: Channel, *, deployment: str, watermark: str | None = None) -> int:
    """Tells one channel the events that need a person and that it was not told yet; each channel has a watermark of its own.

    Args:
        watermark: key of the ledger's meta; None: the channel's own.

    Returns:
        How many events were told; 0 makes no call.

    Raises:
        NotifyError: nothing was lost; call again later.
    """
    key = watermark or f"{_WATERMARK}/{channel.name}"
    after = int(ledger.get_meta(key) or 0)
    told = 0
    while events := ledger.list_events(None, after=after, limit=_BATCH):
        urgent = [notice_of(event, ledger, deployment) for event in events if event.what.startswith(NEEDS_A_PERSON)]
        if urgent:
            channel.send(urgent)
            told += len(urgent)
        after = events[-1].sequence
        ledger.set_meta(key, str(after))
    return told
