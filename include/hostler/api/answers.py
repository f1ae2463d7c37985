"""JSON answers with an ETag: who asks again for what has not changed gets 304 and no body."""

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

READ_AT = "X-Hostler-Read-At"
"""Header with the ledger's time of the read; outside the body, so that equal content has an equal ETag."""


def json_answer(request: Request, document: Any, read_at: datetime) -> Response:
    """Returns the document, or 304 when the caller has it already. Amounts of money are texts, times ISO 8601."""
    body = json.dumps(document, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {READ_AT: read_at.isoformat(timespec="seconds"), "Cache-Control": "no-store"}
    return tagged(request, body, "application/json", headers)


def tagged(request: Request, body: bytes, media_type: str, headers: dict[str, str]) -> Response:
    """Returns a body with its ETag, or 304."""
    # Weak: a compressed answer is the same to us.
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {**headers, "ETag": tag}
    known = {part.strip() for part in request.headers.get("if-none-match", "").split(",")}
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not shown")
