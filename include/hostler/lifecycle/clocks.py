"""The cloud's clock is not the ledger's: its times are brought into ours before anything is judged or priced by them. Pure.

Right clocks leave its times as they are. With one that is an hour off, the span between the cloud's own two times still holds;
only where it begins is ours: not before the intent was written, not in the future.
"""

from datetime import datetime

from hostler.cloud.driver import Machine
from hostler.model.lease import Intent


def launch_time(machine: Machine, intent: Intent, now: datetime) -> datetime:
    """Returns when billing began, by the ledger's clock."""
    at = machine.launched_at
    if at is None:
        return now
    # A launch in the future tells of a clock that is ahead, and nothing of when: then the dearer end of what can be.
    return intent.written_at if at > now else max(at, intent.written_at)


def end_time(machine: Machine, launched_at: datetime, now: datetime) -> datetime:
    """Returns when billing ended, by the ledger's clock.

    Args:
        launched_at: the node's, by the ledger's clock already.
    """
    if machine.ended_at is None:
        return max(now, launched_at)
    at = machine.ended_at
    if machine.launched_at is not None:
        at = launched_at + (machine.ended_at - machine.launched_at)
    return max(launched_at, min(at, max(now, launched_at)))
