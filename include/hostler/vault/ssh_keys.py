"""Ed25519 keys in OpenSSH form from a given seed: same seed, same bytes.

Libraries put a random check number into the private form; a node's user data must be the same for the same intent, so the form
is written here.

Source: https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key (form), RFC 8709 (key encoding).
"""

import base64
import hashlib
import struct
import textwrap

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_KIND = b"ssh-ed25519"
_BLOCK_BYTES = 8  # padding unit of the unencrypted form


def _text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _public(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def public_line(seed: bytes, comment: str) -> str:
    """Returns the public key line, without a line end."""
    blob = _text(_KIND) + _text(_public(seed))
    return f"{_KIND.decode()} {base64.b64encode(blob).decode()} {comment}"


def private_pem(seed: bytes, comment: str) -> str:
    """Returns the private key as an unencrypted OpenSSH PEM text, with its last line end."""
    public = _public(seed)
    blob = _text(_KIND) + _text(public)
    check = hashlib.sha256(b"hostler check number\0" + public).digest()[:4]
    secret = check + check + blob + _text(seed + public) + _text(comment.encode())
    secret += bytes(range(1, 1 + -len(secret) % _BLOCK_BYTES))
    whole = (
        b"openssh-key-v1\0" + _text(b"none") + _text(b"none") + _text(b"") + struct.pack(">I", 1) + _text(blob) + _text(secret)
    )
    lines = "\n".join(textwrap.wrap(base64.b64encode(whole).decode(), 70))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"
