"""What S3 and KMS refuse and moto accepts: a wrong Content-MD5, a key that does not exist, a disabled or dying key.

Sources: S3 API reference, "Error responses" (BadDigest, InvalidDigest, KMS.NotFoundException, KMS.DisabledException); KMS API
reference, "Key states of KMS keys" and the errors of Encrypt, Decrypt, GenerateDataKey.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

from moto.kms.models import kms_backends

from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.moto_server import ACCOUNT, Answer, MotoServer

_S3_KEY_HEADER: Final = "HTTP_X_AMZ_SERVER_SIDE_ENCRYPTION_AWS_KMS_KEY_ID"
_USES_KEY: Final = frozenset(
    {"Encrypt", "Decrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncrypt", "Sign", "Verify", "GenerateMac"}
)
_TAKES_BARE_ID: Final = frozenset(
    {
        "CancelKeyDeletion",
        "DisableKey",
        "DisableKeyRotation",
        "EnableKey",
        "EnableKeyRotation",
        "GetKeyRotationStatus",
        "ListKeyRotations",
        "RotateKeyOnDemand",
        "ScheduleKeyDeletion",
    }
)
"""moto answers HTTP 500 to these when the key is named by its ARN, as KMS allows."""


def s3_refusal(call: Call) -> Answer | None:
    """Returns the refusal of a PUT or POST that S3 would not take; None when it would."""
    digest = call.environ.get("HTTP_CONTENT_MD5")
    if digest:
        try:
            expected = base64.b64decode(digest, validate=True)
        except ValueError:
            expected = b""
        if len(expected) != hashlib.md5(usedforsecurity=False).digest_size:
            return _s3_error(call, "InvalidDigest", "The Content-MD5 you specified was invalid.")
        if expected != hashlib.md5(call.body, usedforsecurity=False).digest():
            return _s3_error(call, "BadDigest", "The Content-MD5 you specified did not match what we received.")
    key_id = call.environ.get(_S3_KEY_HEADER)
    if key_id:
        key = _key(call.region, key_id)
        if key is None:
            return _s3_error(call, "KMS.NotFoundException", f"Key '{key_id}' does not exist")
        if not key.enabled:
            return _s3_error(call, "KMS.DisabledException", f"{key.arn} is disabled.")
    return None


def _s3_error(call: Call, code: str, text: str) -> Answer:
    call.error = code
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{escape(text)}</Message></Error>'
    return 400, [("Content-Type", "application/xml")], body.encode()


def kms_answer(call: Call, moto: MotoServer) -> Answer:
    """Answers a KMS call: moto's answer, unless the key's state forbids it."""
    try:
        body = json.loads(call.body or b"{}")
    except ValueError:
        body = {}
    if call.action in _USES_KEY and "KeyId" in body and (refusal := _state_refusal(call, str(body["KeyId"]))):
        return refusal
    sent = call.body
    if call.action in _TAKES_BARE_ID and str(body.get("KeyId", "")).startswith("arn:"):
        sent = json.dumps({**body, "KeyId": str(body["KeyId"]).rsplit("/", 1)[-1]}).encode()
    answer = moto.call(call.environ, sent)
    if call.action in {"Decrypt", "ReEncrypt"} and answer[0] == 200:  # noqa: PLR2004 - HTTP
        # Which key a text was made with, moto says only when it has decrypted it.
        shown: Mapping[str, Any] = json.loads(answer[2])
        return _state_refusal(call, str(shown.get("SourceKeyId", shown.get("KeyId", "")))) or answer
    return answer


def _state_refusal(call: Call, key_id: str) -> Answer | None:
    key = _key(call.region, key_id)
    if key is None:
        return None
    if key.key_state == "PendingDeletion":
        return _kms_error(call, "KMSInvalidStateException", f"{key.arn} is pending deletion.")
    if not key.enabled:
        return _kms_error(call, "DisabledException", f"{key.arn} is disabled.")
    return None


def _kms_error(call: Call, code: str, text: str) -> Answer:
    call.error = code
    headers = [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", code)]
    return 400, headers, json.dumps({"__type": code, "message": text}).encode()


def _key(region: str, key_id: str) -> Any:
    kms = kms_backends[ACCOUNT][region]
    return kms.keys.get(kms.any_id_to_key_id(key_id))
