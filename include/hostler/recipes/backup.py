"""Seals what the nodes of a lease shipped under one proved manifest, and restores it; refuses what is not as it was sealed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hostler.model.lease import Backup, Lease
from hostler.reach.port import ShippedObject
from hostler.recipes import manifest as manifests
from hostler.recipes.agent.folders import FolderError, unpack
from hostler.recipes.answers import NodeAgentError, shipped_object
from hostler.recipes.manifest import BackupError, Manifest
from hostler.vault.envelope import EnvelopeError, PieceReader, open_pieces
from hostler.vault.port import KeyProvider, ObjectStore

_SEALING_TRIES = 5
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore brought back.

    Attributes:
        steps: (node name, job id, step) of every checkpoint, sorted. files: number of files written below ``folder``.
    """

    lease_id: str
    sealed_at: datetime
    manifest_sha256: str
    object_count: int
    size_bytes: int
    files: int
    steps: tuple[tuple[str, str, int], ...]
    folder: Path


def seal(
    store: ObjectStore, lease: Lease, objects: Sequence[ShippedObject], sealed_at: datetime, *, keys: KeyProvider
) -> Backup:
    """Seals the lease's backup: what ``objects`` names and what the nodes' own lists in the store name (nodes may be lost).

    Every object is read back whole and its hash checked before the manifest is written, and the manifest is read back too; so a
    backup that comes back is verified. Sealing again without news returns the backup that is there.

    Raises:
        BackupError: an object is missing or differs; nothing was sealed; the text names it.
        KeyServiceError: the key can't be had now.
    """
    if lease.wrapped_data_key is None:
        raise BackupError(f"lease {lease.lease_id} has no data key: nothing was ever shipped under it")
    data_key = keys.unwrap(lease.wrapped_data_key, lease.lease_id)
    wanted = _all_objects(store, lease.lease_id, objects)
    damaged = [problem for entry in wanted if (problem := _problem(store, lease.lease_id, entry))]
    if damaged:
        raise BackupError(f"backup of {lease.lease_id}: {len(damaged)} damaged: {'; '.join(damaged[:_MOST_NAMED])}")
    for _ in range(_SEALING_TRIES):
        last = _last(store, lease.lease_id)
        known = _read(store, lease.lease_id, last, data_key) if last else None
        if known and known.objects == wanted:
            return _backup(store, known, last)
        made = Manifest(
            lease_id=lease.lease_id,
            sequence=last + 1,
            previous_sha256=_sha256(store.get(manifests.name_of(lease.lease_id, last))) if last else None,
            sealed_at=sealed_at,
            key_id=keys.key_id,
            wrapped_data_key=lease.wrapped_data_key,
            facts=_facts(lease),
            objects=wanted,
        )
        try:
            store.put(manifests.name_of(lease.lease_id, made.sequence), manifests.write(made, data_key), if_absent=True)
        except FileExistsError:
            continue  # another process sealed meanwhile: look at what it wrote
        return _backup(store, _read(store, lease.lease_id, made.sequence, data_key), made.sequence)
    raise BackupError(f"backup of {lease.lease_id}: others keep sealing it; again later")


def restore(
    store: ObjectStore, keys: KeyProvider, lease_id: str, into: Path, *, manifest_sha256: str | None = None
) -> RestoreReport:
    """Verifies the newest manifest and every object, then decrypts and unpacks below ``into``: ``<node>/<job>/...``.

    Args:
        into: an empty folder, or one that is made.
        manifest_sha256: as the ledger knows it (``Backup.manifest_sha256``); an older manifest is then refused too.

    Raises:
        BackupError: something is missing, changed, swapped or cut; the text names it. What was written before stays.
        KeyServiceError: the data key can't be unwrapped: another deployment's, or another lease's.
    """
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(into.iterdir()):
        raise BackupError(f"{into}: an empty folder is needed")
    last = _last(store, lease_id)
    if not last:
        raise BackupError(f"backup of {lease_id}: no manifest in {store.uri}")
    content = store.get(manifests.name_of(lease_id, last))
    if manifest_sha256 is not None and _sha256(content) != manifest_sha256:
        raise BackupError(f"manifest of {lease_id}: not the one that the ledger names (older, or changed)")
    data_key = keys.unwrap(manifests.wrapped_key_of(content, lease_id), lease_id)
    manifest = _read(store, lease_id, last, data_key)
    _check_chain(store, manifest, data_key)
    files = sum(_restore_object(store, manifest, entry, data_key, into) for entry in manifest.objects)
    return RestoreReport(
        lease_id=lease_id,
        sealed_at=manifest.sealed_at,
        manifest_sha256=_sha256(content),
        object_count=len(manifest.objects),
        size_bytes=sum(entry.size_bytes for entry in manifest.objects),
        files=files,
        steps=tuple(sorted(_steps(manifest))),
        folder=into,
    )


def _all_objects(store: ObjectStore, lease_id: str, told: Sequence[ShippedObject]) -> tuple[ShippedObject, ...]:
    found = {entry.key: entry for entry in _listed(store, lease_id)}
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


def _problem(store: ObjectStore, lease_id: str, entry: ShippedObject) -> str | None:
    """Reads an object back; returns what is wrong with it, or None."""
    digest, size = hashlib.sha256(), 0
    try:
        for piece in store.read_chunks(f"{lease_id}/{entry.key}"):
            digest.update(piece)
            size += len(piece)
    except FileNotFoundError:
        return f"{entry.key} is missing"
    if size != entry.size_bytes:
        return f"{entry.key} has {size} bytes instead of {entry.size_bytes}"
    return None if digest.hexdigest() == entry.sha256 else f"{entry.key} was changed"


def _last(store: ObjectStore, lease_id: str) -> int:
    numbers = (manifests.sequence_of(key) for key in store.list_keys(f"{lease_id}/manifest-"))
    return max((number for number in numbers if number), default=0)


def _read(store: ObjectStore, lease_id: str, sequence: int, data_key: bytes) -> Manifest:
    found = manifests.read(store.get(manifests.name_of(lease_id, sequence)), lease_id, data_key)
    if found.sequence != sequence:
        raise BackupError(
            f"manifest of {lease_id}: number {sequence} is number {found.sequence} in truth: an old one put in its place"
        )
    return found


def _check_chain(store: ObjectStore, manifest: Manifest, data_key: bytes) -> None:
    """Every sealing names the one before it; one that was put in another's place breaks the chain."""
    while manifest.sequence > 1:
        name = manifests.name_of(manifest.lease_id, manifest.sequence - 1)
        try:
            content = store.get(name)
        except FileNotFoundError as error:
            raise BackupError(f"{name} is missing") from error
        if _sha256(content) != manifest.previous_sha256:
            raise BackupError(f"{name} was changed")
        manifest = _read(store, manifest.lease_id, manifest.sequence - 1, data_key)


def _backup(store: ObjectStore, manifest: Manifest, sequence: int) -> Backup:
    name = manifests.name_of(manifest.lease_id, sequence)
    return Backup(
        backup_id=f"{manifest.lease_id}-{sequence}",
        lease_id=manifest.lease_id,
        manifest_uri=f"{store.uri.rstrip('/')}/{name}",
        manifest_sha256=_sha256(store.get(name)),
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


def _restore_object(store: ObjectStore, manifest: Manifest, entry: ShippedObject, data_key: bytes, into: Path) -> int:
    problem = _problem(store, manifest.lease_id, entry)
    if problem:
        raise BackupError(problem)
    name = f"{manifest.lease_id}/{entry.key}"
    reader = PieceReader(open_pieces(store.read_chunks(name), data_key, name))
    place = into.joinpath(*entry.key.split("/")[:-1])
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        count = _unpack(entry, reader, place)
        if reader.drain() != entry.plain_sha256:
            raise BackupError(f"{entry.key}: not the content that was shipped")
    except (EnvelopeError, FolderError) as error:
        raise BackupError(f"{entry.key}: {error}") from error
    return count


def _unpack(entry: ShippedObject, reader: PieceReader, place: Path) -> int:
    if entry.key.endswith(".tar.hste"):
        return unpack(reader, place)
    name = entry.key.rpartition("/")[2].removesuffix(".hste")
    with (place / f"{name}.{'log' if entry.kind == 'log' else 'jsonl'}").open("xb") as target:
        while piece := reader.read(1024 * 1024):
            target.write(piece)
    return 1


def _steps(manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    for entry in manifest.objects:
        if entry.kind == "checkpoint" and entry.step is not None:
            node_name, job_id, _ = entry.key.split("/", 2)
            yield node_name, job_id, entry.step


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
