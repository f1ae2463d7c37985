"""What only the text of a request shows, refused at the door of Airflow's REST API: keys that stand twice, NaN, megabytes.

Airflow parses a body into a dict before anything of ours sees it: of two equal keys the last one silently wins, and a conf of any
size is stored for ever. This middleware reads the body of ``POST .../dags/hostler_*/dagRuns`` first. All other checks stay where
they are (Params, ``admit``), which hold without it, too.
"""

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from hostler.model.request_schema import MAX_CONF_BYTES

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]

_RUNS: Final = re.compile(r"^/api/v2/dags/hostler_[^/]+/dagRuns/?$")
MAX_BODY_BYTES: Final = MAX_CONF_BYTES + 16 * 1024
"""The conf and what stands beside it: run id, dates, note (Airflow's own limit of a note is 1000 characters)."""
_SHOWN: Final = 80


class RequestDoor:
    """Plain ASGI; answers 400 in Airflow's own form (``{"detail": ...}``), or passes the request on unchanged."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the body of a request that starts a run of ours; all others pass unread."""
        is_ours = scope["type"] == "http" and scope["method"] == "POST" and _RUNS.match(scope.get("path", ""))
        if not is_ours:
            await self._app(scope, receive, send)
            return
        body, last = bytearray(), await receive()
        while True:
            body += last.get("body", b"")
            if not last.get("more_body") or len(body) > MAX_BODY_BYTES:
                break
            last = await receive()
        wrong = fault_of(bytes(body))
        if wrong:
            await _refuse(send, wrong)
            return
        # What was read is handed on whole; a message that is no part of the body (the client went away) is handed on as it came.
        read: list[Scope] = [{"type": "http.request", "body": bytes(body), "more_body": False}]
        if last["type"] != "http.request":
            read = [last]

        async def again() -> Scope:
            return read.pop() if read else await receive()

        await self._app(scope, again, send)


def fault_of(body: bytes) -> str:
    """Returns what is wrong with the text of a body, with the field and what is allowed; empty when nothing is.

    A text that is no JSON at all is Airflow's own to refuse.
    """
    if len(body) > MAX_BODY_BYTES:
        return f"conf: the request has more than {MAX_BODY_BYTES} bytes; allowed: a conf of up to {MAX_CONF_BYTES} bytes"
    twice: list[str] = []
    no_numbers: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in items:
            if name in seen:
                twice.append(name)
            seen[name] = value
        return seen

    try:
        json.loads(body, object_pairs_hook=pairs, parse_constant=no_numbers.append)
    except (ValueError, RecursionError):
        return ""
    if twice:
        return f"{twice[0][:_SHOWN]}: stands twice in one object; allowed: each key once"
    return f"conf: {no_numbers[0]} is not JSON; allowed: finite numbers" if no_numbers else ""


async def _refuse(send: Send, words: str) -> None:
    answer = json.dumps({"detail": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
