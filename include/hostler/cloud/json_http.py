"""JSON over HTTP for price APIs that need no SDK: one attempt, bounded in time and size, errors drawn, no secret in a text."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudError, CloudThrottledError, CloudUnavailableError

TIMEOUT_S: Final = 30.0
MAX_BYTES: Final = 64 * 1024 * 1024

_WORDS: Final = 300
"""Longest part of an answer that an error quotes."""


def ask(
    url: str,
    *,
    query: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> dict[str, Any]:
    """Returns the JSON object that the address answers with.

    Args:
        query: goes into the address, so it must hold no secret. form: posted; None makes it a GET.

    Raises:
        CloudAuthError, CloudConfigError: stop. CloudThrottledError, CloudUnavailableError: the same call later.
    """
    place = _place(url)
    address = f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(query)}" if query else url
    body = urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(address, data=body, headers={"Accept": "application/json", **(headers or {})})  # noqa: S310  # checked by _place
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  # as above
            raw = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise _drawn(place, error) from None
    except OSError as error:
        raise CloudUnavailableError(f"{place}: {getattr(error, 'reason', None) or type(error).__name__}") from error
    if len(raw) > MAX_BYTES:
        raise CloudUnavailableError(f"{place}: the answer is larger than {MAX_BYTES} bytes")
    return _object(place, raw)


def same_place(base: str, link: str) -> str:
    """Returns a link to the next page, which must be at the same host. Raises CloudConfigError: it leads elsewhere."""
    one, other = urlsplit(base), urlsplit(link)
    if (one.scheme, one.hostname, one.port or _port(one.scheme)) != (
        other.scheme,
        other.hostname,
        other.port or _port(other.scheme),
    ):
        raise CloudConfigError(f"{_place(base)}: the next page is at {other.scheme}://{other.netloc}, which is not followed")
    return link


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _place(url: str) -> str:
    """Returns host and path, which errors name. Raises CloudConfigError: not http or https."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CloudConfigError(f"price API {parts.scheme}://{parts.hostname}: allowed are http:// and https://")
    return f"{parts.hostname}{parts.path}"


def _object(place: str, raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise CloudUnavailableError(f"{place}: the answer is not JSON") from error
    if not isinstance(found, dict):
        raise CloudUnavailableError(f"{place}: the answer is not a JSON object")
    return found


def _drawn(place: str, error: urllib.error.HTTPError) -> CloudError:
    """Returns the error as its type; the text quotes the start of what the cloud said."""
    said = " ".join(error.read(4096).decode("utf-8", "replace").split())[:_WORDS]
    text, code = f"{place}: HTTP {error.code}: {said}", str(error.code)
    if error.code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN} and not _is_rate(said):
        return CloudAuthError(text, code=code)
    if error.code == HTTPStatus.TOO_MANY_REQUESTS or _is_rate(said):
        return CloudThrottledError(text, code=code, retry_after_s=_seconds(error.headers.get("Retry-After")))
    if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == HTTPStatus.REQUEST_TIMEOUT:
        return CloudUnavailableError(text, code=code)
    return CloudConfigError(text, code=code)


def _is_rate(said: str) -> bool:
    """True when a refusal is about the rate of calls, whatever its status: Alibaba and Google also use 400 and 403 for it."""
    return any(word in said for word in ("Throttling", "RATE_LIMIT_EXCEEDED", "rateLimitExceeded"))


def _seconds(cell: str | None) -> float | None:
    return float(cell) if cell and cell.isascii() and cell.isdigit() else None
