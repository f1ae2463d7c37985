"""Phase ``backup``: the nodes that still answer ship the rest, then everything is sealed and read back."""

from dataclasses import replace

from hostler.lifecycle.charge import Charge
from hostler.lifecycle.events import words_of
from hostler.lifecycle.gang import gather_all, or_silence
from hostler.lifecycle.next_end import askable_nodes
from hostler.lifecycle.step import Effect
from hostler.model.lease import Backup, Node
from hostler.reach.port import ReachError, ShippedObject

FLUSH_TIMEOUT_S = 300.0
"""Longest that one node may take to ship what is left; what it shipped before is in the store anyway."""

AGAIN_S = 10.0
AGAIN_CAP_S = 60.0


async def seal(charge: Charge, effect: Effect) -> None:
    """Effect SEAL. A store or key service that fails is tried again later; nothing here ends a node."""
    try:
        backup = await _flush_and_seal(charge)
    except Exception as error:  # noqa: BLE001 - any failure of the store is the same to us: not sealed, visible, tried again
        after_s = charge.memory.backoff_s(effect.key, AGAIN_S, AGAIN_CAP_S)
        charge.memory.hold(effect.key, charge.now(), after_s, words_of(error))
        charge.fleet.crash("event:seal:before")
        event = charge.event("backup.failed", words_of(error))
        await charge.fleet.offload(lambda: charge.fleet.ledger.append_events([event]))
        return
    why = f"{backup.object_count} objects, {backup.size_bytes} bytes, {'read back' if backup.is_verified else 'NOT verified'}"
    event = charge.event("backup.sealed", why, manifest_uri=backup.manifest_uri)
    await charge.write("backup-sealed", [backup], [event])
    if not backup.is_verified:
        charge.memory.hold(effect.key, charge.now(), AGAIN_S, "the backup could not be read back whole")


async def _flush_and_seal(charge: Charge) -> Backup:
    nodes, lease = askable_nodes(charge.view), charge.lease

    async def _flush(node: Node) -> tuple[ShippedObject, ...]:
        found = await charge.ask("flush", lambda: charge.fleet.nodes.flush(node, lease.lease_id), FLUSH_TIMEOUT_S)
        return tuple(found)

    answers = await gather_all([or_silence(_flush(node)) for node in nodes])
    objects = [item for answer in answers if not isinstance(answer, ReachError) for item in answer]
    sealed_at = charge.now()
    fleet = charge.fleet
    backup = await charge.call("seal", lambda: fleet.seams.seal(fleet.store, lease, objects, sealed_at, keys=fleet.keys))
    earlier = next((row for row in charge.view.backups if row.backup_id == backup.backup_id), None)
    return replace(backup, row_version=earlier.row_version if earlier else 0)
