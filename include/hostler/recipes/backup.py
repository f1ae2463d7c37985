"""Seals what the nodes of a lease shipped under one proved manifest."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from hostler.model.lease import Backup, Lease
from hostler.reach.port import ShippedObject
from hostler.recipes import manifest as manifests
from hostler.recipes.answers import NodeAgentError, shipped_object
from hostler.recipes.manifest import BackupError, Manifest
from hostler.recipes.restoring import RestoreReport, restore
from hostler.recipes.sealed import last_sequence, problem_of, read_manifest, sha256_of
from hostler.vault.port import KeyProvider, ObjectStore, SupportsObjectLock

__all__ = ["RestoreReport", "restore", "seal"]

_SEALING_TRIES = 5
_MOST_NAMED = 5


def seal(
    store: ObjectStore, lease: Lease, objects: Sequence[ShippedObject], sealed_at: datetime, *, keys: KeyProvider
) -> Backup:
    """Seals the lease's backup: what ``objects`` names and what the nodes' own lists in the store name (nodes may be lost).

    Every object is read back whole, opened with the lease's key and its hashes checked before the manifest is written, and the
    manifest is read back too; so a backup that comes back is verified. Sealing again without news returns the backup that is
    there. Where fleet.yaml asks for object lock, objects are locked before the manifest names them.

    Raises:
        BackupError: an object is missing or differs; nothing was sealed; the text names it.
        KeyServiceError: the key can't be had now.
        ObjectLockError: a lock is asked for and the store has none; nothing was sealed, or it is sealed and not locked yet.
    """
    if lease.wrapped_data_key is None:
        raise BackupError(f"lease {lease.lease_id} has no data key: nothing was ever shipped under it")
    data_key = keys.unwrap(lease.wrapped_data_key, lease.lease_id)
    for _ in range(_SEALING_TRIES):
        last = last_sequence(store, lease.lease_id)
        known = read_manifest(store, lease.lease_id, last, data_key) if last else None
        # What was sealed once is not forgotten because a node's list in the store lost it.
        wanted = all_objects(store, lease.lease_id, objects, known.objects if known else ())
        _check_all(store, lease.lease_id, wanted, data_key)
        if known and known.objects == wanted:
            return _sealed(store, known)
        made = Manifest(
            lease_id=lease.lease_id,
            sequence=last + 1,
            previous_sha256=sha256_of(store.get(manifests.name_of(lease.lease_id, last))) if last else None,
            sealed_at=sealed_at,
            key_id=keys.key_id,
            wrapped_data_key=lease.wrapped_data_key,
            facts=_facts(lease),
            objects=wanted,
        )
        _lock(store, (f"{lease.lease_id}/{entry.key}" for entry in wanted), sealed_at)
        try:
            store.put(manifests.name_of(lease.lease_id, made.sequence), manifests.write(made, data_key), if_absent=True)
        except FileExistsError:
            continue  # another process sealed meanwhile: look at what it wrote
        return _sealed(store, read_manifest(store, lease.lease_id, made.sequence, data_key))
    raise BackupError(f"backup of {lease.lease_id}: others keep sealing it; again later")


def _check_all(store: ObjectStore, lease_id: str, wanted: Sequence[ShippedObject], data_key: bytes) -> None:
    damaged = [problem for entry in wanted if (problem := problem_of(store, lease_id, entry, data_key))]
    if damaged:
        raise BackupError(f"backup of {lease_id}: {len(damaged)} damaged: {'; '.join(damaged[:_MOST_NAMED])}")


def all_objects(
    store: ObjectStore, lease_id: str, told: Sequence[ShippedObject] = (), known: Sequence[ShippedObject] = ()
) -> tuple[ShippedObject, ...]:
    """Returns what ``known``, the nodes' lists in the store and ``told`` name, the later ones first, sorted by key.

    Raises:
        BackupError: a list can't be read or names what is not its node's.
    """
    found = {entry.key: entry for entry in known}
    found |= {entry.key: entry for entry in _listed(store, lease_id)}
    found |= {entry.key: manifests.check_key(entry) for entry in told}
    return tuple(found[key] for key in sorted(found))


def _listed(store: ObjectStore, lease_id: str) -> Iterator[ShippedObject]:
    for key in store.list_keys(f"{lease_id}/"):
        parts = key.split("/")
        if len(parts) != 3 or parts[2] != "index.json":  # noqa: PLR2004 - lease, node, file
            continue
        try:
            document = json.loads(store.get(key))
            entries = [manifests.check_key(shipped_object(entry)) for entry in document["objects"]]
        except (ValueError, KeyError, TypeError, NodeAgentError) as error:
            raise BackupError(f"{key}: unreadable list of a node") from error
        for entry in entries:
            if not entry.key.startswith(f"{parts[1]}/"):
                raise BackupError(f"{key}: names {entry.key}, which is not its node's")
            yield entry


def _lock(store: ObjectStore, keys: Iterator[str], sealed_at: datetime) -> None:
    if isinstance(store, SupportsObjectLock) and store.locks_objects:
        for key in keys:
            store.lock(key, sealed_at)


def _sealed(store: ObjectStore, manifest: Manifest) -> Backup:
    name = manifests.name_of(manifest.lease_id, manifest.sequence)
    # Here too when it was sealed before: a process that died may have left it without its lock.
    _lock(store, iter([name]), manifest.sealed_at)
    return Backup(
        backup_id=f"{manifest.lease_id}-{manifest.sequence}",
        lease_id=manifest.lease_id,
        manifest_uri=f"{store.uri.rstrip('/')}/{name}",
        manifest_sha256=sha256_of(store.get(name)),
        object_count=len(manifest.objects),
        size_bytes=sum(entry.size_bytes for entry in manifest.objects),
        sealed_at=manifest.sealed_at,
        is_verified=True,
    )


def _facts(lease: Lease) -> dict[str, str]:
    return {
        "deployment": lease.deployment,
        "dag_id": lease.run.dag_id,
        "run_id": lease.run.run_id,
        "tenant": lease.request.tenant,
        "recipe": lease.request.recipe,
    }
