"""The cloud's instance metadata service: region, credentials of the machine's role, interruption notice (AWS, version 2).

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
"""

from __future__ import annotations

import http.client
import json
import os
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

USUAL_ENDPOINT = "http://169.254.169.254"
_TIMEOUT_S = 2.0
_TOKEN_S = 21600
_OK, _NOT_FOUND, _UNAUTHORIZED = 200, 404, 401
_ROLE = "/latest/meta-data/iam/security-credentials/"


class MetadataError(Exception):
    """The metadata service did not answer, or not in its own way. Says nothing of interruptions."""


class Credentials(NamedTuple):
    """Keys for signing. Never printed. ``good_until``: monotonic seconds; infinite for fixed keys."""

    access_key: str
    secret_key: str
    token: str | None
    good_until: float

    def __repr__(self) -> str:
        """Names nothing."""
        return "Credentials(...)"


class Metadata:
    """A client of the service. Thread use: one object a thread."""

    def __init__(self, endpoint: str | None = None) -> None:
        parts = urlsplit(endpoint or os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or USUAL_ENDPOINT)
        self._host, self._port = parts.hostname or "169.254.169.254", parts.port or 80
        self._token: str | None = None

    def get(self, path: str) -> str | None:
        """Returns the text at a path; None when the service says that there is none. Raises MetadataError."""
        for _ in range(2):
            if self._token is None:
                status, body = self._ask("PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_S)})
                if status != _OK:
                    raise MetadataError(f"metadata service: no token, status {status}")
                self._token = body
            status, body = self._ask("GET", path, {"X-aws-ec2-metadata-token": self._token})
            if status == _OK:
                return body
            if status == _NOT_FOUND:
                return None
            self._token = None
            if status != _UNAUTHORIZED:
                raise MetadataError(f"metadata service: status {status}")
        raise MetadataError("metadata service: token refused")

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(65536).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise MetadataError(f"metadata service: {type(error).__name__}") from error
        finally:
            connection.close()

    def notice(self) -> dict[str, Any] | None:
        """Returns the interruption notice, with ``action`` and ``time``; None when there is none. Raises MetadataError."""
        text = self.get("/latest/meta-data/spot/instance-action")
        if text is None:
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MetadataError("metadata service: instance-action is no JSON") from error
        if not isinstance(found, dict) or not isinstance(found.get("action"), str):
            raise MetadataError("metadata service: instance-action names no action")
        return {"action": found["action"][:32], "time": str(found.get("time"))[:64]}

    def credentials(self) -> Credentials:
        """Returns the keys of the machine's role. Raises MetadataError."""
        role = (self.get(_ROLE) or "").splitlines()
        if not role:
            raise MetadataError("metadata service: the machine has no role (instance profile)")
        try:
            found = json.loads(self.get(_ROLE + role[0].strip()) or "")
            return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"], time.monotonic() + 900)
        except (ValueError, KeyError, TypeError) as error:
            raise MetadataError("metadata service: unreadable role credentials") from error


def find_credentials() -> Credentials:
    """Returns keys from the environment, else from the metadata service. Raises MetadataError."""
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if key and secret:
        return Credentials(key, secret, os.environ.get("AWS_SESSION_TOKEN") or None, float("inf"))
    return Metadata().credentials()


def find_region() -> str:
    """Returns the region from the environment, else from the metadata service. Raises MetadataError."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    found = named or Metadata().get("/latest/meta-data/placement/region")
    if not found:
        raise MetadataError("no region: neither the target, the environment nor the metadata service names one")
    return found
