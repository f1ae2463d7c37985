"""When a machine costs, as the cloud tells it: from its launch to its end, not while it is stopped, never if it never ran. Pure."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from hostler.cloud.driver import Machine, MachineState
from hostler.lifecycle.clocks import end_time
from hostler.model.enums import NodeState
from hostler.model.lease import Node

FAILED_STARTS: Final = frozenset(
    {
        "Server.InsufficientInstanceCapacity",
        "Server.InternalError",
        "Client.InternalError",
        "Client.InvalidSnapshot.NotFound",
        "Client.VolumeLimitExceeded",
    }
)
"""Reasons of the cloud for ending a machine before it ran; one that is pending is not billed. Source: EC2 API reference,
StateReason, and EC2 user guide, "Instance lifecycle", read 2026-12-01.
"""

_BILLS: Final = frozenset({MachineState.PENDING, MachineState.RUNNING})


def billed(node: Node, machine: Machine, now: datetime) -> Node:
    """Returns the node with its billing times brought up to what the cloud shows.

    A stop closes the interval at the cloud's own time, whoever stopped it; a start again opens the next one. Clouds date the
    launch of a machine anew at each start: the first date stays.
    """
    if machine.state is MachineState.STOPPED and node.stopped_at is None:
        return replace(node, stopped_at=end_time(machine, node.launched_at, now))
    if machine.state is MachineState.TERMINATED:
        has_failed = node.state is NodeState.LAUNCHED and machine.state_reason in FAILED_STARTS
        return replace(node, has_failed_start=has_failed or node.has_failed_start)
    if node.stopped_at is not None and machine.state in _BILLS:
        return _started_again(node, machine, now)
    return node


def _started_again(node: Node, machine: Machine, now: datetime) -> Node:
    assert node.stopped_at is not None  # noqa: S101 - the caller looked
    # A launch time before the stop is that of the first start: this cloud does not date starts.
    began_at = machine.launched_at if machine.launched_at and machine.launched_at > node.stopped_at else now
    stopped_s = node.stopped_s + max(0.0, (began_at - node.stopped_at).total_seconds())
    return replace(node, stopped_at=None, stopped_s=stopped_s)
