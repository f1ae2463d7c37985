"""Scheduled events of instances. Source: EC2 user guide, "Scheduled events for your instances"; API reference, InstanceStatusEvent."""

import secrets
import threading
from datetime import datetime
from typing import Any, Final

CODES: Final = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")


class ScheduledEvents:
    """All events, by instance. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, list[dict[str, Any]]] = {}

    def add(self, instance_id: str, code: str, not_before: datetime, description: str) -> str:
        """Adds an event and returns its id. Raises ValueError for an unknown code."""
        if code not in CODES:
            raise ValueError(f"code: {code!r}: allowed: {', '.join(CODES)}")
        event_id = f"instance-event-{secrets.token_hex(8)}0"
        event = {"InstanceEventId": event_id, "Code": code, "Description": description, "NotBefore": not_before}
        with self._lock:
            self._events.setdefault(instance_id, []).append(event)
        return event_id

    def of(self, instance_id: str) -> list[dict[str, Any]]:
        """Returns the events of an instance, oldest first."""
        with self._lock:
            return list(self._events.get(instance_id, ()))

    def clear(self) -> None:
        """Forgets all events."""
        with self._lock:
            self._events.clear()
