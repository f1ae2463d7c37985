"""The manifest of a sealed backup: what belongs to it, with hashes, in one canonical form, proved by the lease's data key."""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hostler.reach.port import ShippedObject
from hostler.recipes.answers import NodeAgentError, shipped_object

FORMAT = "hostler-backup"
VERSION = 1
_NAME = re.compile(r"manifest-([0-9]{6})\.json")
_OBJECT_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)+")


class BackupError(Exception):
    """The backup is not whole, not ours, or was changed: nothing of it is used. The text names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One sealing of a lease's backup.

    Attributes:
        sequence: 1 for the first sealing of the lease; each later one names the hash of the one before it.
        previous_sha256: None for the first.
        facts: what run and tenant it was, in words.
        objects: sorted by key.
    """

    lease_id: str
    sequence: int
    previous_sha256: str | None
    sealed_at: datetime
    key_id: str
    wrapped_data_key: str
    facts: Mapping[str, str]
    objects: tuple[ShippedObject, ...]


def name_of(lease_id: str, sequence: int) -> str:
    """Returns the manifest's key in the store."""
    return f"{lease_id}/manifest-{sequence:06d}.json"


def sequence_of(key: str) -> int | None:
    """Returns the sequence number in a key; None when it is no manifest's."""
    match = _NAME.fullmatch(key.rpartition("/")[2])
    return int(match.group(1)) if match and key.count("/") == 1 else None


def write(manifest: Manifest, data_key: bytes) -> bytes:
    """Returns the manifest's bytes: canonical JSON with its proof."""
    body = _body(manifest)
    return _canonical({**body, "proof": _proof(body, data_key)}) + b"\n"


def wrapped_key_of(content: bytes, lease_id: str) -> str:
    """Returns the wrapped data key that a manifest names; needed before it can be proved. Raises BackupError."""
    document = _document(content, lease_id)
    wrapped = document.get("wrapped_data_key")
    if not isinstance(wrapped, str):
        raise BackupError(f"manifest of {lease_id}: names no data key")
    return wrapped


def read(content: bytes, lease_id: str, data_key: bytes) -> Manifest:
    """Returns the manifest after its proof held.

    Raises:
        BackupError: it was changed, belongs to another lease or key, or is not in its canonical form.
    """
    document = _document(content, lease_id)
    proof = document.pop("proof", None)
    if not isinstance(proof, str) or not hmac.compare_digest(proof, _proof(document, data_key)):
        raise BackupError(f"manifest of {lease_id}: changed, or sealed with another key")
    if _canonical({**document, "proof": proof}) + b"\n" != content:
        raise BackupError(f"manifest of {lease_id}: not in its canonical form")
    return _manifest(document)


def _manifest(document: Mapping[str, Any]) -> Manifest:
    try:
        return Manifest(
            lease_id=document["lease_id"],
            sequence=document["sequence"],
            previous_sha256=document["previous_sha256"],
            sealed_at=datetime.fromisoformat(document["sealed_at"]),
            key_id=document["key_id"],
            wrapped_data_key=document["wrapped_data_key"],
            facts=document["facts"],
            objects=tuple(check_key(shipped_object(entry)) for entry in document["objects"]),
        )
    except (KeyError, TypeError, ValueError, NodeAgentError) as error:  # proved, but of another version's making
        raise BackupError(f"manifest: a field is missing or of another kind: {error}") from error


def check_key(entry: ShippedObject) -> ShippedObject:
    """Returns the entry. Raises BackupError when its key could mean an object of another lease."""
    if not _OBJECT_KEY.fullmatch(entry.key):
        raise BackupError(f"object key {entry.key[:100]!r} is not allowed")
    return entry


def _document(content: bytes, lease_id: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BackupError(f"manifest of {lease_id}: not readable") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise BackupError(f"manifest of {lease_id}: not of format {FORMAT} {VERSION}")
    if document.get("lease_id") != lease_id:
        raise BackupError(f"manifest of {lease_id}: belongs to lease {str(document.get('lease_id'))[:40]!r}")
    return document


def _body(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "lease_id": manifest.lease_id,
        "sequence": manifest.sequence,
        "previous_sha256": manifest.previous_sha256,
        "sealed_at": manifest.sealed_at.isoformat(),
        "key_id": manifest.key_id,
        "wrapped_data_key": manifest.wrapped_data_key,
        "facts": dict(manifest.facts),
        "objects": [
            {
                "key": entry.key,
                "kind": entry.kind,
                "sha256": entry.sha256,
                "plain_sha256": entry.plain_sha256,
                "size_bytes": entry.size_bytes,
                "step": entry.step,
            }
            for entry in manifest.objects
        ],
    }


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _proof(body: Mapping[str, Any], data_key: bytes) -> str:
    key = hmac.new(data_key, b"hostler manifest 1", hashlib.sha256).digest()
    return hmac.new(key, _canonical(body), hashlib.sha256).hexdigest()
