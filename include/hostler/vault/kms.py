"""Data keys wrapped by a key of AWS KMS: the wrapping key never leaves it, and each use is in the account's trail.

Sources: KMS API reference, GenerateDataKey, Decrypt and their errors; developer guide, "Encryption context".
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hostler.vault.port import KeyProvider, KeyServiceError

PREFIX: Final = "kms:"
"""How a key that KMS wrapped begins; what the local master key wrapped has none."""

_KEY_BYTES: Final = 32
_ARN: Final = re.compile(r"arn:aws[a-z-]*:kms:(?P<region>[a-z0-9-]+):[0-9]{12}:(?:key|alias)/[A-Za-z0-9/_-]+")
_HELP: Final[Mapping[str, str]] = {
    "AccessDeniedException": "the caller lacks kms:GenerateDataKey or kms:Decrypt on it",
    "DisabledException": "it is disabled",
    "IncorrectKeyException": "the wrapped key was made with another key",
    "InvalidCiphertextException": "the wrapped key is not this lease's, or damaged",
    "KMSInvalidStateException": "its state forbids it (pending deletion?)",
    "NotFoundException": "there is no such key",
}


def region_of(arn: str) -> str:
    """Returns the region of a KMS key's or alias's ARN. Raises ValueError."""
    match = _ARN.fullmatch(arn)
    if match is None:
        raise ValueError(f"keys.kms_key: arn:aws:kms:<region>:<account>:key/<id> (or alias/<name>) allowed, {arn!r} given")
    return match["region"]


class KmsKeys:
    """Implements KeyProvider.

    Args:
        arn: of the wrapping key (symmetric) or of its alias. deployment: goes into the encryption context with the lease's id, so
            that key policies and the trail can tell deployments apart.
        client_factory: gives a boto3 KMS client of the key's region; called at the first use.
    """

    def __init__(self, arn: str, *, deployment: str, client_factory: Callable[[], Any]) -> None:
        region_of(arn)
        self._arn = arn
        self._deployment = deployment
        self._client_factory = client_factory
        self._made: Any = None
        self.key_id = f"kms:{arn}"

    def new_data_key(self, context: str) -> tuple[bytes, str]:
        """Returns (32 plain bytes, wrapped key as text), bound to ``context``. Raises KeyServiceError."""
        asked = {"KeyId": self._arn, "KeySpec": "AES_256", "EncryptionContext": self._bound(context)}
        answer = self._call("generate_data_key", context, **asked)
        plain, wrapped = bytes(answer["Plaintext"]), answer["CiphertextBlob"]
        if len(plain) != _KEY_BYTES:
            raise KeyServiceError(f"{self.key_id}: gave a data key of {len(plain)} bytes, {_KEY_BYTES} expected")
        return plain, PREFIX + base64.b64encode(wrapped).decode()

    def unwrap(self, wrapped: str, context: str) -> bytes:
        """Returns the plain key. Raises KeyServiceError, also for a wrong context or a changed byte."""
        if not wrapped.startswith(PREFIX):
            raise KeyServiceError(f"wrapped key of {context!r}: not wrapped by KMS")
        try:
            blob = base64.b64decode(wrapped[len(PREFIX) :], validate=True)
        except (binascii.Error, ValueError) as error:
            raise KeyServiceError(f"wrapped key of {context!r}: damaged") from error
        if not blob:
            raise KeyServiceError(f"wrapped key of {context!r}: damaged")
        # KeyId is named, so that a blob of somebody else's key is refused and not opened for him.
        asked = {"KeyId": self._arn, "CiphertextBlob": blob, "EncryptionContext": self._bound(context)}
        return bytes(self._call("decrypt", context, **asked)["Plaintext"])

    def _bound(self, context: str) -> dict[str, str]:
        return {"hostler:deployment": self._deployment, "hostler:context": context}

    def _call(self, operation: str, context: str, **arguments: Any) -> Mapping[str, Any]:
        try:
            if self._made is None:
                self._made = self._client_factory()
            answer: Mapping[str, Any] = getattr(self._made, operation)(**arguments)
        except Exception as error:  # noqa: BLE001 - the SDK has dozens of types; its text may quote what was sent
            code = str(getattr(error, "response", {}).get("Error", {}).get("Code", "")) or type(error).__name__
            words = f"{self.key_id}: {_HELP.get(code, 'it could not be asked')} ({code}, {operation} for {context!r})"
        else:
            return answer
        # Outside the except clause: else the SDK's error hangs on this one as its context.
        raise KeyServiceError(words)


class KeyRing:
    """New data keys by the newest service; old ones are unwrapped by whichever made them. Implements KeyProvider.

    So a deployment can move from the local master key to KMS and still read its older backups, as long as both are there.
    """

    def __init__(self, *, kms: KeyProvider, local: KeyProvider) -> None:
        self._kms = kms
        self._local = local
        self.key_id = kms.key_id

    def new_data_key(self, context: str) -> tuple[bytes, str]:
        """Returns a key wrapped by KMS. Raises KeyServiceError."""
        return self._kms.new_data_key(context)

    def unwrap(self, wrapped: str, context: str) -> bytes:
        """Returns the plain key. Raises KeyServiceError."""
        return (self._kms if wrapped.startswith(PREFIX) else self._local).unwrap(wrapped, context)
