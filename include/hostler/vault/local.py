"""Keys kept in a folder of one's own: one master key file; all else is derived from it or wrapped by it.

For one deployment, one folder, readable by its owner only. Whoever has the file has every key of the deployment.
"""

import base64
import binascii
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hostler.vault import ssh_keys
from hostler.vault.port import KeyServiceError

if TYPE_CHECKING:
    import asyncssh

_KEY_BYTES = 32
_NONCE_BYTES = 12
_WRAP_VERSION = b"\x01"
MASTER_FILE = "master.key"
BACKDATED_S = 86_400  # a node's clock may be behind; a certificate that was good yesterday harms nobody


@dataclass(frozen=True, slots=True)
class UserCertificate:
    """A private key with a certificate of the deployment's authority. ``expires_at``: when nodes stop accepting it."""

    key: "asyncssh.SSHKey"
    certificate: "asyncssh.SSHCertificate"
    expires_at: datetime


class LocalKeys:
    """Implements KeyProvider and NodeIdentity, and signs user certificates.

    Args:
        folder: made (0700) with a fresh master key (0600) on first use.
        clock: gives aware UTC; for certificates only.

    Raises:
        KeyServiceError: the folder or the file is open to others, is not a whole key, or can't be read; the text says which.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._master = _load(folder)
        self._clock = clock
        self.key_id = "local:" + self._derive("key id", 8).hex()

    def new_data_key(self, context: str) -> tuple[bytes, str]:
        """Returns (32 plain bytes, wrapped key as base64), bound to ``context`` (the lease id)."""
        plain = os.urandom(_KEY_BYTES)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(self._derive("wrap", _KEY_BYTES)).encrypt(nonce, plain, self._bound(context))
        return plain, base64.b64encode(_WRAP_VERSION + nonce + sealed).decode()

    def unwrap(self, wrapped: str, context: str) -> bytes:
        """Returns the plain key. Raises KeyServiceError, also for a wrong context, another master key or a changed byte."""
        if wrapped.startswith("kms:"):
            raise KeyServiceError(f"wrapped key of {context!r}: KMS wrapped it; name the key in fleet.yaml (keys.kms_key)")
        try:
            raw = base64.b64decode(wrapped, validate=True)
            if raw[:1] != _WRAP_VERSION:
                raise KeyServiceError(f"wrapped key: version {_WRAP_VERSION[0]} expected")
            nonce, sealed = raw[1 : 1 + _NONCE_BYTES], raw[1 + _NONCE_BYTES :]
            return AESGCM(self._derive("wrap", _KEY_BYTES)).decrypt(nonce, sealed, self._bound(context))
        except (InvalidTag, binascii.Error, ValueError) as error:
            raise KeyServiceError(f"wrapped key: not one of {self.key_id} for {context!r}, or damaged") from error

    def host_key_pair(self, intent_id: str) -> tuple[str, str]:
        """Returns the node's SSH host key (private PEM in OpenSSH form, public line): same intent, same bytes."""
        seed = self._derive(f"host key {intent_id}", _KEY_BYTES)
        return ssh_keys.private_pem(seed, intent_id), ssh_keys.public_line(seed, intent_id)

    def user_ca_public_key(self) -> str:
        """Returns the public line of the deployment's certificate authority for user keys."""
        return ssh_keys.public_line(self._derive("user authority", _KEY_BYTES), "hostler-user-authority")

    def user_certificate(self, principal: str, valid_s: float = 3600) -> UserCertificate:
        """Returns a fresh key and a certificate for ``principal`` that ends ``valid_s`` seconds from now."""
        import asyncssh

        now = self._clock()
        authority = asyncssh.import_private_key(ssh_keys.private_pem(self._derive("user authority", _KEY_BYTES), "authority"))
        key = asyncssh.generate_private_key("ssh-ed25519")
        expires_at = now + timedelta(seconds=valid_s)
        certificate = authority.generate_user_certificate(
            key,
            f"hostler {principal}",
            principals=[principal],
            valid_after=(now - timedelta(seconds=BACKDATED_S)).timestamp(),
            valid_before=expires_at.timestamp(),
            permit_x11_forwarding=False,
            permit_agent_forwarding=False,
            permit_user_rc=False,
        )
        return UserCertificate(key, certificate, expires_at)

    def _bound(self, context: str) -> bytes:
        return f"hostler data key\0{self.key_id}\0{context}".encode()

    def _derive(self, purpose: str, length: int) -> bytes:
        return HKDF(algorithm=SHA256(), length=length, salt=None, info=f"hostler {purpose}".encode()).derive(self._master)


def _load(folder: Path) -> bytes:
    path = folder / MASTER_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as source:
            mode = stat.S_IMODE(os.fstat(source.fileno()).st_mode)
            if mode & 0o077:
                raise KeyServiceError(f"{path}: mode {mode:04o} lets others in; 0600 is allowed (chmod 600)")
            master = source.read(_KEY_BYTES + 1)
    except OSError as error:
        raise KeyServiceError(f"{path}: {error.strerror or error}") from error
    if len(master) != _KEY_BYTES:
        raise KeyServiceError(f"{path}: {_KEY_BYTES} bytes expected, {len(master)} or more found; nothing was changed")
    return master


def _make(path: Path) -> None:
    """Makes the file whole or not at all: two first users at once end with the same key."""
    temporary = path.with_name(f"{path.name}.{os.urandom(6).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as target:
            target.write(os.urandom(_KEY_BYTES))
            target.flush()
            os.fsync(target.fileno())
        os.link(temporary, path)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    finally:
        temporary.unlink(missing_ok=True)
