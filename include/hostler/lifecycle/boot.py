"""Phase ``launch``, the waiting half: a machine becomes a node when it answers with its pinned key."""

from dataclasses import replace

from hostler.lifecycle.charge import Charge
from hostler.lifecycle.step import Effect
from hostler.model.enums import NodeState, Verdict

BOOT_POLL_S = 5.0
BOOT_POLL_CAP_S = 20.0


async def check_boot(charge: Charge, effect: Effect) -> None:
    """Effect BOOT: asks a launched or lost-sight-of node whether it is up; then it is ``registered``, its health unknown."""
    node = charge.node(effect)
    if not await charge.ask("is-up", lambda: charge.fleet.nodes.is_up(node)):
        wait_s = charge.memory.backoff_s(effect.key, BOOT_POLL_S, BOOT_POLL_CAP_S)
        charge.memory.hold(effect.key, charge.now(), wait_s, f"slot {node.slot_index}: {node.provider_id} does not answer yet")
        return
    now = charge.now()
    up = replace(
        node, state=NodeState.REGISTERED, heartbeat_at=now, last_seen_at=now, health=Verdict.UNKNOWN, health_reasons=()
    )
    event = charge.event("node.registered", f"{node.address} answers", slot_index=node.slot_index, provider_id=node.provider_id)
    await charge.write_node("node-registered", up, event)
    charge.memory.clear(effect.key)
