"""Effects on the lease row alone: a phase is done, the lease has failed, what it waits for."""

from dataclasses import replace

from hostler.cloud.errors import CloudError
from hostler.lifecycle.charge import Charge, all_of
from hostler.lifecycle.ending import end_now
from hostler.lifecycle.events import shorten
from hostler.lifecycle.slots import live_nodes
from hostler.lifecycle.step import Effect
from hostler.model.enums import LeaseState, Phase
from hostler.model.lease import Node


async def mark(charge: Charge, effect: Effect) -> None:
    """Effect MARK: the lease has done a phase; with ``launch`` it becomes active."""
    phase = effect.phase or Phase.ADMIT
    is_up = phase is Phase.LAUNCH and charge.lease.state is LeaseState.GRANTED
    lease = replace(
        charge.lease,
        reached=phase.value,
        state=LeaseState.ACTIVE if is_up else charge.lease.state,
        wait_since=None,
        wait_reason=None,
    )
    await charge.write(f"mark-{phase}", [lease], [charge.event(f"lease.{phase}_done", effect.reason or f"{phase} is done")])


async def fail(charge: Charge, effect: Effect) -> None:
    """Effect FAIL: keeps the first cause. After a refusal by the cloud itself, what exists is ended at once, best effort."""
    lease = replace(charge.lease, failure=charge.lease.failure or shorten(effect.reason))
    await charge.write("failed", [lease], [charge.event("lease.failed", effect.reason)])
    await charge.fleet.offload(charge.fleet.tell)
    if charge.memory.fatal is not None:
        await all_of([_end_quietly(charge, node) for node in live_nodes(charge.view)])


async def _end_quietly(charge: Charge, node: Node) -> None:
    """Ends a node; when the cloud denies that too, the node stays ``leak suspected`` and the release goes on trying."""
    try:
        await end_now(charge, node, f"the lease failed: {charge.memory.fatal}")
    except CloudError:
        return  # the cloud of this node is not in fleet.yaml any more: the release reports it


async def note_wait(charge: Charge, reason: str) -> None:
    """Writes what the lease waits for, when that is new."""
    if charge.lease.wait_reason == reason:
        return
    lease = replace(charge.lease, wait_since=charge.now(), wait_reason=reason)
    await charge.write("waiting", [lease], [charge.event("lease.waiting", reason)])
