"""Alibaba Cloud's RPC calls, signed with an access key.

Source: alibabacloud.com/help/sdk/product-overview/rpc-mechanism, signature version 1.0 with HMAC-SHA1.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hostler.cloud.json_http import ask

VERSION = "2014-05-26"
"""Of the ECS API."""


class Rpc:
    """Calls the ECS API of one account.

    Args:
        key_id, key_secret: the access key. endpoint_url: None takes the region's own.
        nonce: gives a text that was never used before, for each call.
    """

    def __init__(self, *, key_id: str, key_secret: str, nonce: Callable[[], str], endpoint_url: str | None = None) -> None:
        self._key_id = key_id
        self._key_secret = key_secret
        self._nonce = nonce
        self._endpoint_url = endpoint_url

    def call(self, region: str, action: str, now: datetime, **arguments: str) -> dict[str, Any]:
        """Returns the answer. Raises CloudError: drawn."""
        form = {
            "Action": action,
            "Version": VERSION,
            "Format": "JSON",
            "RegionId": region,
            "AccessKeyId": self._key_id,
            "SignatureMethod": "HMAC-SHA1",
            "SignatureVersion": "1.0",
            "SignatureNonce": self._nonce(),
            "Timestamp": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **arguments,
        }
        url = self._endpoint_url or f"https://ecs.{region}.aliyuncs.com"
        # Posted, not in the address: key and signature must not end up in logs.
        return ask(url.rstrip("/") + "/", form={**form, "Signature": signature("POST", form, self._key_secret)})


def signature(method: str, arguments: Mapping[str, str], key_secret: str) -> str:
    """Returns the value of ``Signature`` for a call with these arguments."""
    canonical = "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in sorted(arguments.items()))
    text = f"{method}&{_escaped('/')}&{_escaped(canonical)}"
    digest = hmac.new(f"{key_secret}&".encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def _escaped(text: str) -> str:
    return quote(text, safe="-_.~")
