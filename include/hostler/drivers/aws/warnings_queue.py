"""Interruption warnings by EventBridge and SQS: minutes of notice for all machines at once, one cheap call a look.

A message is left in the queue while its warning is in force: every process that looks is to hear of it, and which one drives a
lease is not known. It is deleted once it is too old to matter.

Source: EC2 user guide, "Spot Instance interruption notices" and "EC2 instance rebalance recommendations"; EventBridge
reference, "AWS service event metadata".
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hostler.cloud.driver import Interruption
from hostler.cloud.errors import CloudError
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.notices import SPOT_NOTICE

_log = logging.getLogger(__name__)

IN_FORCE: Final = timedelta(minutes=10)
"""A warning older than this is over: spot machines go two minutes after it."""

MOST_CALLS: Final = 3
"""Most receives a look: 30 messages. What is left is heard at the next one."""

HIDDEN_S: Final = 1
"""How long a message that we read is hidden from others."""

_KINDS: Final = {
    "EC2 Spot Instance Interruption Warning": "interruption",
    "EC2 Instance Rebalance Recommendation": "rebalance",
}
_DEPTH: Final = 3


class WarningsQueue:
    """Reads the queues of warnings. Thread-safe.

    Args:
        url_for: a region's queue; None when it has none. now: gives the time, aware UTC.
    """

    def __init__(
        self,
        calls: Calls,
        url_for: Callable[[str], str | None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._calls = calls
        self._url_for = url_for
        self._now = now
        self._heard: dict[tuple[str, str], Interruption] = {}
        self._lock = threading.Lock()

    def read(self, region: str) -> tuple[Interruption, ...]:
        """Returns the warnings in force that were heard of in the region, by machine.

        A queue that cannot be read is logged and is no error: the other ways to hear of interruptions must not go with it.
        """
        url = self._url_for(region)
        if url is None:
            return ()
        now = self._now()
        try:
            self._receive(region, url, now)
        except CloudError as error:
            _log.warning("interruption warnings of %s cannot be read: %s", region, error)
        with self._lock:
            self._heard = {key: one for key, one in self._heard.items() if now - one.noticed_at <= IN_FORCE}
            return tuple(one for one in self._heard.values() if one.region == region)

    def _receive(self, region: str, url: str, now: datetime) -> None:
        for _ in range(MOST_CALLS):
            answer = self._calls.call(
                region,
                "receive_message",
                service="sqs",
                QueueUrl=url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=HIDDEN_S,
                WaitTimeSeconds=0,
                AttributeNames=["SentTimestamp"],
            )
            messages = answer.get("Messages", ())
            old = [message for message in messages if self._take(message, region, now)]
            if old:
                entries = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(old)]
                self._calls.call(region, "delete_message_batch", service="sqs", QueueUrl=url, Entries=entries)
            if not messages:
                return

    def _take(self, message: Mapping[str, Any], region: str, now: datetime) -> bool:
        """Keeps what the message warns of; returns True when the message is to be deleted."""
        warning = read_warning(str(message.get("Body", "")), region)
        if warning is not None and now - warning.noticed_at <= IN_FORCE:
            with self._lock:
                self._heard[(warning.provider_id, warning.kind)] = warning
            return False
        return warning is not None or now - _sent_at(message) > IN_FORCE


def read_warning(body: str, region: str) -> Interruption | None:
    """Returns what a message warns of; None for anything else. A message that came through SNS is unwrapped."""
    document: Any = body
    for _ in range(_DEPTH):
        if not isinstance(document, str):
            break
        try:
            document = json.loads(document)
        except (ValueError, RecursionError):
            return None
        if isinstance(document, dict) and document.get("Type") == "Notification":
            document = document.get("Message")
    if not isinstance(document, dict) or document.get("source") != "aws.ec2" or document.get("region") != region:
        return None
    detail = document.get("detail")
    kind = _KINDS.get(str(document.get("detail-type")))
    machine = detail.get("instance-id") if isinstance(detail, dict) else None
    at = _time(document.get("time"))
    if kind is None or not isinstance(machine, str) or not machine.startswith("i-") or at is None:
        return None
    takes_effect_at = at + SPOT_NOTICE if kind == "interruption" else None
    return Interruption(provider_id=machine, region=region, kind=kind, noticed_at=at, takes_effect_at=takes_effect_at)


def _time(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(value))
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _sent_at(message: Mapping[str, Any]) -> datetime:
    try:
        return datetime.fromtimestamp(int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
