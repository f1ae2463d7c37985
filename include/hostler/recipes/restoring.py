"""Restores a sealed backup: whole, or nothing of it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hostler.reach.port import ShippedObject
from hostler.recipes.agent.folders import FolderError, unpack
from hostler.recipes.manifest import BackupError, Manifest
from hostler.recipes.sealed import SealedBackup, finish, open_backup, open_object
from hostler.vault.envelope import EnvelopeError, PieceReader
from hostler.vault.port import KeyProvider, ObjectStore

_UNPROVED = ".unproved"
_COPY_BYTES = 1024 * 1024


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


def restore(
    store: ObjectStore, keys: KeyProvider, lease_id: str, into: Path, *, manifest_sha256: str | None = None
) -> RestoreReport:
    """Proves the newest manifest, then decrypts, proves and unpacks every object below ``into``: ``<node>/<job>/...``.

    Each object is read once, in constant memory. Nothing shows under its name in ``into`` before all of it was proved.

    Args:
        into: an empty folder, or one that is made.
        manifest_sha256: as the ledger knows it (``Backup.manifest_sha256``); an older manifest is then refused too.

    Raises:
        BackupError: something is missing, changed, swapped or cut; the text names it, and ``into`` is empty again.
        KeyServiceError: the data key can't be unwrapped: another deployment's, or another lease's.
    """
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    unproved = into / _UNPROVED
    shutil.rmtree(unproved, ignore_errors=True)  # of a restore that was killed
    if any(into.iterdir()):
        raise BackupError(f"{into}: an empty folder is needed")
    backup = open_backup(store, keys, lease_id, known_sha256=manifest_sha256)
    unproved.mkdir(mode=0o700)
    try:
        files = sum(_restore_object(store, backup, entry, unproved) for entry in backup.manifest.objects)
        for path in list(unproved.iterdir()):
            path.rename(into / path.name)
    finally:
        shutil.rmtree(unproved, ignore_errors=True)
    return _report(backup, files, into)


def _report(backup: SealedBackup, files: int, into: Path) -> RestoreReport:
    manifest = backup.manifest
    return RestoreReport(
        lease_id=manifest.lease_id,
        sealed_at=manifest.sealed_at,
        manifest_sha256=backup.sha256,
        object_count=len(manifest.objects),
        size_bytes=sum(entry.size_bytes for entry in manifest.objects),
        files=files,
        steps=tuple(sorted(steps_of(manifest))),
        folder=into,
    )


def steps_of(manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    """Yields (node name, job id, step) of every checkpoint."""
    for entry in manifest.objects:
        if entry.kind == "checkpoint" and entry.step is not None:
            node_name, job_id, _ = entry.key.split("/", 2)
            yield node_name, job_id, entry.step


def _restore_object(store: ObjectStore, backup: SealedBackup, entry: ShippedObject, into: Path) -> int:
    place = into.joinpath(*entry.key.split("/")[:-1])
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    reader = open_object(store, backup.manifest.lease_id, entry, backup.data_key)
    try:
        count = _unpack(entry, reader, place)
        finish(entry, reader)
    except (EnvelopeError, FolderError) as error:
        raise BackupError(f"{entry.key}: {error}") from error
    return count


def _unpack(entry: ShippedObject, reader: PieceReader, place: Path) -> int:
    if entry.key.endswith(".tar.hste"):
        return unpack(reader, place)
    name = entry.key.rpartition("/")[2].removesuffix(".hste")
    with (place / f"{name}.{'log' if entry.kind == 'log' else 'jsonl'}").open("xb") as target:
        while piece := reader.read(_COPY_BYTES):
            target.write(piece)
    return 1
