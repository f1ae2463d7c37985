"""Reads sealed backups back: the chain of manifests, and objects whose every byte is proved on its way."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from hostler.reach.port import ShippedObject
from hostler.recipes import manifest as manifests
from hostler.recipes.manifest import BackupError, Manifest
from hostler.vault.envelope import EnvelopeError, PieceReader, open_pieces
from hostler.vault.port import KeyProvider, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedBackup:
    """The newest sealing of a lease, proved with all before it.

    Attributes:
        data_key: the lease's, plain: never logged. sha256: of the newest manifest's bytes. chain: those of all, oldest first.
    """

    manifest: Manifest
    data_key: bytes
    sha256: str
    chain: tuple[str, ...]

    def __repr__(self) -> str:
        return f"SealedBackup({self.manifest.lease_id}-{self.manifest.sequence})"


def open_backup(store: ObjectStore, keys: KeyProvider, lease_id: str, *, known_sha256: str | None = None) -> SealedBackup:
    """Proves the manifests of a lease, the newest and all before it.

    Args:
        known_sha256: of a manifest that the ledger knows. It must be the newest or one before it: a process that died between
            the store and the ledger leaves a newer one, which is good; an older one in its place is refused.

    Raises:
        BackupError: there is none, or one is missing, changed, or put in another's place; the text names it.
        KeyServiceError: the data key can't be unwrapped: another deployment's, or another lease's.
    """
    last = last_sequence(store, lease_id)
    if not last:
        raise BackupError(f"backup of {lease_id}: no manifest in {store.uri}")
    content = store.get(manifests.name_of(lease_id, last))
    data_key = keys.unwrap(manifests.wrapped_key_of(content, lease_id), lease_id)
    manifest = read_manifest(store, lease_id, last, data_key)
    chain = _chain(store, manifest, sha256_of(content), data_key)
    if known_sha256 is not None and known_sha256 not in chain:
        raise BackupError(f"manifest of {lease_id}: not the one that the ledger names (older, or changed)")
    return SealedBackup(manifest=manifest, data_key=data_key, sha256=chain[-1], chain=chain)


def last_sequence(store: ObjectStore, lease_id: str) -> int:
    """Returns the number of the newest manifest; 0 when there is none."""
    numbers = (manifests.sequence_of(key) for key in store.list_keys(f"{lease_id}/manifest-"))
    return max((number for number in numbers if number), default=0)


def read_manifest(store: ObjectStore, lease_id: str, sequence: int, data_key: bytes) -> Manifest:
    """Returns one manifest, proved. Raises BackupError."""
    name = manifests.name_of(lease_id, sequence)
    try:
        content = store.get(name)
    except FileNotFoundError as error:
        raise BackupError(f"{name} is missing") from error
    found = manifests.read(content, lease_id, data_key)
    if found.sequence != sequence:
        raise BackupError(
            f"manifest of {lease_id}: number {sequence} is number {found.sequence} in truth: an old one put in its place"
        )
    return found


def _chain(store: ObjectStore, manifest: Manifest, sha256: str, data_key: bytes) -> tuple[str, ...]:
    """Every sealing names the one before it; one that was put in another's place breaks the chain."""
    chain = [sha256]
    while manifest.sequence > 1:
        name = manifests.name_of(manifest.lease_id, manifest.sequence - 1)
        try:
            found = sha256_of(store.get(name))
        except FileNotFoundError as error:
            raise BackupError(f"{name} is missing") from error
        if found != manifest.previous_sha256:
            raise BackupError(f"{name} was changed")
        chain.append(found)
        manifest = read_manifest(store, manifest.lease_id, manifest.sequence - 1, data_key)
    return tuple(reversed(chain))


def open_object(store: ObjectStore, lease_id: str, entry: ShippedObject, data_key: bytes) -> PieceReader:
    """Returns a reader of an object's plain bytes; call ``finish`` at its end. It raises BackupError or EnvelopeError."""
    name = f"{lease_id}/{entry.key}"
    return PieceReader(open_pieces(_as_listed(store, name, entry), data_key, name))


def finish(entry: ShippedObject, reader: PieceReader) -> None:
    """Reads the rest, which proves the object to its last byte. Raises BackupError or EnvelopeError."""
    if reader.drain() != entry.plain_sha256:
        raise BackupError(f"{entry.key}: not the content that was shipped")


def problem_of(store: ObjectStore, lease_id: str, entry: ShippedObject, data_key: bytes) -> str | None:
    """Reads an object back and opens it, in constant memory; returns what is wrong with it, or None."""
    try:
        finish(entry, open_object(store, lease_id, entry, data_key))
    except BackupError as error:
        return str(error)
    except EnvelopeError as error:
        return f"{entry.key}: {error}"
    return None


def _as_listed(store: ObjectStore, name: str, entry: ShippedObject) -> Iterator[bytes]:
    """Yields the sealed bytes; raises BackupError at the first that can't belong to the listed object.

    Size and hash say in plain words what is wrong; the envelope alone would refuse it too.
    """
    digest, size = hashlib.sha256(), 0
    try:
        for piece in store.read_chunks(name):
            digest.update(piece)
            size += len(piece)
            if size > entry.size_bytes:
                break
            yield piece
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise BackupError(f"{entry.key} is missing") from error
    if size != entry.size_bytes:
        more = "more than " if size > entry.size_bytes else f"{size} bytes instead of "
        raise BackupError(f"{entry.key} has {more}{entry.size_bytes}: cut, or bytes were added")
    if digest.hexdigest() != entry.sha256:
        raise BackupError(f"{entry.key} was changed")


def sha256_of(content: bytes) -> str:
    """Returns the SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()
