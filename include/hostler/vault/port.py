"""Key services and the object store that backups go to."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable


class KeyServiceError(Exception):
    """The key service refused or could not be reached; nothing was encrypted or decrypted."""


class ObjectLockError(Exception):
    """A lock is asked for and cannot be had, or an object is locked and was to be deleted; the text says which."""


class KeyProvider(Protocol):
    """Wraps data keys. ``key_id`` names the wrapping key in manifests and is no secret."""

    key_id: str

    def new_data_key(self, context: str) -> tuple[bytes, str]:
        """Returns (32 plain bytes, wrapped key as text), bound to ``context`` (the lease id). Raises KeyServiceError."""
        ...

    def unwrap(self, wrapped: str, context: str) -> bytes:
        """Returns the plain key. Raises KeyServiceError, also for a wrong context or a changed byte."""
        ...


class ObjectStore(Protocol):
    """Backup store as the controller sees it: ``file://`` folder or ``s3://`` prefix."""

    uri: str

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> None:
        """Writes an object; with ``if_absent`` raises FileExistsError when it is there already."""
        ...

    def replace(self, key: str, content: bytes, *, expected: bytes | None) -> bool:
        """Writes an object if it still is ``expected`` (None: not there yet); returns whether it was.

        A store that cannot do so in one step does it in two: then the later of two writers at one moment wins.
        """
        ...

    def get(self, key: str) -> bytes:
        """Reads an object whole. Raises FileNotFoundError."""
        ...

    def read_chunks(self, key: str, chunk_bytes: int = 8 * 1024 * 1024) -> Iterator[bytes]:
        """Reads an object in pieces. Raises FileNotFoundError."""
        ...

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Returns all keys under the prefix, sorted."""
        ...


@runtime_checkable
class SupportsUpkeep(Protocol):
    """A store that backups can be moved into from a file, and deleted from."""

    def put_file(self, key: str, path: Path) -> None:
        """Writes a file of any size as an object, in constant memory; whole or not at all."""
        ...

    def delete(self, key: str) -> None:
        """Deletes an object with all its versions; one that is not there is fine.

        Raises:
            ObjectLockError: the store keeps it; nothing, or some older versions only, are gone.
        """
        ...

    def abort_uploads(self, prefix: str) -> int:
        """Gives up uploads under the prefix that were begun and never finished, which cost too; returns how many."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectLock:
    """What keeps an object from being deleted. ``until``: aware UTC, None when no time is set. ``is_held``: legal hold."""

    until: datetime | None
    is_held: bool

    def holds_at(self, now: datetime) -> bool:
        """True when the store would refuse to delete the object."""
        return self.is_held or (self.until is not None and self.until > now)


@runtime_checkable
class SupportsObjectLock(Protocol):
    """A store that can keep objects from everybody, itself included, until a time.

    Attributes:
        locks_objects: fleet.yaml asks for it.
    """

    locks_objects: bool

    def lock(self, key: str, since: datetime) -> None:
        """Keeps an object for the asked days from ``since``; again, with the same ``since``, changes nothing.

        Raises:
            ObjectLockError: the store has no lock, or refused it.
        """
        ...

    def lock_of(self, key: str) -> ObjectLock:
        """Returns the lock on an object, whoever put it there. Raises FileNotFoundError."""
        ...


class NodeIdentity(Protocol):
    """Keys that nodes and users prove themselves with."""

    def host_key_pair(self, intent_id: str) -> tuple[str, str]:
        """Returns the node's SSH host key (private PEM in OpenSSH form, public line), derived: same intent, same key."""
        ...

    def user_ca_public_key(self) -> str:
        """Returns the public line of the deployment's certificate authority for user keys."""
        ...
