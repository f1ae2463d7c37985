"""Refusals that AWS gives and moto does not, for the services that moto answers.

Sources: S3 PutObject API reference (BadDigest, KMS.NotFoundException); KMS API reference (DisabledException, KMSInvalidStateException).
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from hostler_sandbox.aws.account import find_kms_key

_KEY_USES: Final = {"Encrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncrypt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An HTTP answer that refuses. ``code``: the service's error code."""

    status: int
    code: str
    body: bytes
    content_type: str


def refusal_of(service: str, action: str, region: str, environ: dict[str, Any], body: bytes) -> Refusal | None:
    """Returns the refusal that AWS would give for the call; None when moto may answer."""
    if service == "s3":
        return _s3(region, environ, body)
    if service == "kms" and action in _KEY_USES:
        return _kms(region, body)
    return None


def _s3(region: str, environ: dict[str, Any], body: bytes) -> Refusal | None:
    digest = environ.get("HTTP_CONTENT_MD5")
    if digest and base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode() != digest:
        return _s3_error(400, "BadDigest", "The Content-MD5 you specified did not match what we received.")
    key = environ.get("HTTP_X_AMZ_SERVER_SIDE_ENCRYPTION_AWS_KMS_KEY_ID")
    if key and find_kms_key(region, key) is None:
        return _s3_error(400, "KMS.NotFoundException", f"Key '{key}' does not exist")
    return None


def _s3_error(status: int, code: str, message: str) -> Refusal:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Refusal(status=status, code=code, body=text.encode(), content_type="application/xml")


def _kms(region: str, body: bytes) -> Refusal | None:
    name = json.loads(body or b"{}").get("KeyId", "")
    key = find_kms_key(region, name)
    if key is None or key.key_state == "Enabled":
        return None
    code = "DisabledException" if key.key_state == "Disabled" else "KMSInvalidStateException"
    document = {"__type": code, "message": f"{name} is {key.key_state}."}
    return Refusal(status=400, code=code, body=json.dumps(document).encode(), content_type="application/x-amz-json-1.1")
