"""Key services and the object store that backups go to."""

from collections.abc import Iterator
from typing import Protocol


class KeyServiceError(Exception):
    """The key service refused or could not be reached; nothing was encrypted or decrypted."""


class KeyProvider(Protocol):
    """Wraps data keys. ``key_id`` names the wrapping key in manifests and is no secret."""

    key_id: str

    def new_data_key(self, context: str) -> tuple[bytes, str]:
        """Returns (32 plain bytes, wrapped key as base64), bound to ``context`` (the lease id). Raises KeyServiceError."""
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


class NodeIdentity(Protocol):
    """Keys that nodes and users prove themselves with."""

    def host_key_pair(self, intent_id: str) -> tuple[str, str]:
        """Returns the node's SSH host key (private PEM in OpenSSH form, public line), derived: same intent, same key."""
        ...

    def user_ca_public_key(self) -> str:
        """Returns the public line of the deployment's certificate authority for user keys."""
        ...
